#!/bin/sh
# SPDX-License-Identifier: MIT
# Progressive differentiation (Rogers and McClelland 2004): distances between what the network makes of the items, while
# it learns. Plants and animals come apart first, then trees and flowers, birds and fishes, and the single items last.
# Coherent covariation: an attribute of two items that share much else is learnt before one of two that share little.
work=$(mktemp -d) && cd "$work" || exit 1
trap 'rm -rf "$work"' EXIT
microprop train example:semantics --until never --epochs 2400 --run run --checkpoints-every 100 --quiet >log || exit 1
items() { # WEIGHTS OPTION...: compares the items
	weights=$1
	shift
	microprop analyze example:semantics "$weights" make:semantics --group meaning --average name "$@"
}
echo '        distance between                    attribute on'
echo ' epoch  plant, animal  kinds  single items  of a kind  of any two'
for epoch in 100 200 300 500 700 900 1200 1600 2400; do
	weights=run/epoch-$(printf %06d $epoch).safetensors
	items "$weights" --distances d.csv >/dev/null || exit 1
	microprop predict example:semantics "$weights" make:semantics --output out.csv >/dev/null || exit 1
	# Items are elm fir tulip poppy heron finch carp trout; each has four cases: is a, is, can, has. Outputs 16 and 17
	# are what trees and flowers are, 44 and 45 red (poppy, finch) and old (elm, carp).
	awk -F, -v epoch=$epoch '
		FILENAME == "d.csv" && FNR > 1 {
			for (i = 2; i < FNR; i++) {
				a = FNR - 2; b = i - 2
				level = int(a / 4) != int(b / 4) ? 1 : int(a / 2) != int(b / 2) ? 2 : 3
				sum[level] += $i; n[level]++
			}
		}
		FILENAME == "out.csv" && FNR % 4 == 3 {
			item = int((FNR - 2) / 4)
			if (item < 2) kind += $17
			if (item == 2 || item == 3) kind += $18
			if (item == 3 || item == 5) any += $45
			if (item == 0 || item == 6) any += $46
		}
		END {
			printf "%6d  %13.2f %6.2f %13.2f %10.2f %11.2f\n", epoch, sum[1] / n[1], sum[2] / n[2], sum[3] / n[3],
				kind / 4, any / 4
		}' d.csv out.csv
done
echo
echo 'after 900 epochs:'
items run/epoch-000900.safetensors | sed -n '3,11p'
