#!/bin/sh
# SPDX-License-Identifier: MIT
# Features that nobody told of (Hinton 1986): persons whom the relations treat alike get similar codes. Those of one
# generation are closer to each other than to others, and so are persons who stand in the same place of the two
# families, although no fact connects them. Facts that were held out are answered far more often than by chance (1 in
# 24).
work=$(mktemp -d) && cd "$work" || exit 1
trap 'rm -rf "$work"' EXIT
microprop train example:family-tree --save w.safetensors --quiet >run.txt || exit 1
grep '^patterns' run.txt
microprop analyze example:family-tree w.safetensors make:family-tree --group code --average name --distances d.csv \
	>tree.txt || exit 1
awk -F, 'FNR > 1 {
		a = FNR - 2
		for (i = 2; i < FNR; i++) {
			b = i - 2; x = a % 12; y = b % 12
			same = (x < 4 ? 1 : x < 10 ? 2 : 3) == (y < 4 ? 1 : y < 10 ? 2 : 3)
			kind = int(a / 12) == int(b / 12) ? (same ? 1 : 2) : x == y ? 3 : 4
			sum[kind] += $i; n[kind]++
		}
	}
	END {
		print "\nmean distance of codes"
		for (k = 1; k <= 4; k++) mean[k] = sum[k] / n[k]
		printf "one family     of one generation  %.2f   of two generations  %.2f\n", mean[1], mean[2]
		printf "two families   in the same place  %.2f   in another place    %.2f\n\n", mean[3], mean[4]
	}' d.csv
sed -n '3,27p' tree.txt
for seed in 1 2 3 4 5 6 7 8; do # 4 of 104 facts held out
	microprop data make:family-tree most.npz rest.npz --split 0.96 --seed $seed >/dev/null 2>&1
	microprop train example:family-tree most.npz --test rest.npz --quiet --json --no-save 2>/dev/null
done | grep -o '"test_right": [0-9.]*' |
	awk '{ sum += $2 } END { printf "\nheld out, best guess right: %.0f %%\n", 100 * sum / NR }'
