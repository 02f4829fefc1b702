#!/bin/sh
# SPDX-License-Identifier: MIT
# Regularity and frequency interact (Seidenberg and McClelland 1989): while the network learns, irregular verbs gain
# much from being frequent, regular ones hardly. Overregularization: before an irregular verb is learnt, it mostly gets
# a regular suffix.
work=$(mktemp -d) && cd "$work" || exit 1
trap 'rm -rf "$work"' EXIT
microprop train example:past-tense --until never --epochs 300 --run run --checkpoints-every 10 --quiet >log || exit 1
microprop data make:past-tense data.csv >/dev/null 2>&1
echo 'verbs right (%), and irregular ones that get a regular suffix'
echo ' epoch  regular frequent, rare   irregular frequent, rare   suffix'
for epoch in 10 20 30 50 100 200 300; do
	weights=run/epoch-$(printf %06d $epoch).safetensors
	microprop predict example:past-tense "$weights" make:past-tense --output out.csv >/dev/null || exit 1
	awk -F, -v epoch=$epoch '
		FILENAME == "data.csv" { for (i = 1; i <= 25; i++) target[FNR, i] = $(i + 21); next }
		FNR > 1 { # a name such as irregular.rare.bim, the outputs; 23 to 25 are the suffixes
			split($1, name, ".")
			kind = name[1] "." name[2]
			right = 1
			for (i = 1; i <= 25; i++) right = right && ($(i + 1) > 0.5) == target[FNR, i]
			n[kind]++
			good[kind] += right
			if (name[1] == "irregular") { all++; suffix += $24 > 0.5 || $25 > 0.5 || $26 > 0.5 }
		}
		function share(kind) { return 100 * good[kind] / n[kind] }
		END {
			printf "%6d  %16.0f %6.0f %20.0f %6.0f %8.0f\n", epoch, share("regular.frequent"), share("regular.rare"),
				share("irregular.frequent"), share("irregular.rare"), 100 * suffix / all
		}' data.csv out.csv
done
