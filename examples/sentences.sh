#!/bin/sh
# SPDX-License-Identifier: MIT
# Sentences are understood word by word (St. John and McClelland 1990). Who does what to whom follows from the order of
# words and the passive; before it is said, the network expects what a person mostly eats; and it infers an instrument
# that is never mentioned.
work=$(mktemp -d) && cd "$work" || exit 1
trap 'rm -rf "$work"' EXIT
microprop train example:sentences --save w.safetensors --quiet >log || exit 1
microprop predict example:sentences w.safetensors make:sentences --output out.csv >/dev/null || exit 1
awk -F, '
	BEGIN {
		split("baker pilot nurse child dog cat goose goat", agent, " ")
		split("eat chase", action, " ")
		split("bread soup cake rice dog cat goose goat", patient, " ")
		split("knife spoon fork sticks none", instrument, " ")
		split("1 9 11 19 24", first, " ")
		n = split("baker ate,pilot ate,pilot ate soup,pilot ate bread,nurse ate cake,dog,dog chased,dog chased goat," \
			"dog was-chased,dog was-chased by goat,goat chased dog", wanted, ",")
		for (i = 1; i <= n; i++) order[wanted[i]] = i
		printf "%-24s %-12s %-12s %-12s %s\n", "words so far", "agent", "action", "patient", "instrument"
	}
	$1 in order && !($1 in line) {
		for (r = 1; r <= 4; r++) {
			best = first[r]
			for (i = first[r]; i < first[r + 1]; i++) if ($(i + 1) > $(best + 1)) best = i
			k = best - first[r] + 1
			filler = r == 1 ? agent[k] : r == 2 ? action[k] : r == 3 ? patient[k] : instrument[k]
			line[$1] = line[$1] sprintf(" %-12s", sprintf("%s %.2f", filler, $(best + 1)))
		}
	}
	END { for (i = 1; i <= n; i++) printf "%-24s%s\n", wanted[i], line[wanted[i]] }' out.csv | sed 's/ *$//'
