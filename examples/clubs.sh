#!/bin/sh
# SPDX-License-Identifier: MIT
# Content-addressable memory (McClelland 1981): trained to recall members of two clubs by their names, or by all of
# their properties, the network completes cues that it never saw. Four of five properties recall the member and the
# missing one; a club alone recalls what its members typically are.
work=$(mktemp -d) && cd "$work" || exit 1
trap 'rm -rf "$work"' EXIT
microprop train example:clubs --save w.safetensors --quiet >run.txt || exit 1
grep -E '^(patterns|solved)' run.txt
microprop predict example:clubs w.safetensors make:club-probes --output out.csv >/dev/null || exit 1
microprop data make:club-probes data.csv >/dev/null 2>&1
awk -F, '
	BEGIN {
		split("club age school status work", property, " ")
		split("Herons Otters 20s 30s 40s primary secondary college single married divorced sailor cook clerk", \
			value, " ")
		split("25 27 30 33 36 39", first, " ") # units of the properties
	}
	function best(from, to,    i, top) {
		for (top = i = from; i <= to; i++) if ($(i + 1) > $(top + 1)) top = i
		return top
	}
	FILENAME == "data.csv" { for (i = 1; i <= 38; i++) target[FNR, i] = $(i + 38); next }
	/^without/ {
		p = substr($1, 9, 1)
		cues[p]++
		name[p] += target[FNR, best(1, 24)] == 1
		filled[p] += target[FNR, best(first[p], first[p + 1] - 1)] == 1
	}
	/^club/ {
		line = sprintf("%-12s", substr($1, 6))
		for (p = 2; p <= 5; p++) {
			top = best(first[p], first[p + 1] - 1)
			line = line sprintf(" %s %.2f ", value[top - 24], $(top + 1))
		}
		typical[++clubs] = line
	}
	END {
		print "\ncue without  member right  property right"
		for (p = 1; p <= 5; p++)
			printf "%-12s %10.0f %% %13.0f %%\n", property[p], 100 * name[p] / cues[p], 100 * filled[p] / cues[p]
		print "\nclub alone"
		for (i = 1; i <= clubs; i++) print typical[i]
	}' data.csv out.csv | sed 's/ *$//'
