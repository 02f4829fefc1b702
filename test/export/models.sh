# SPDX-License-Identifier: MIT
# Trained models with cases, for what checks exported files; sourced in an empty folder. Of each NAME in $models:
# NAME.safetensors, NAME.x (a row of numbers for each case, as exported networks take it), NAME.y (what predict gives).
train() { "$MICROPROP" train "$@" --quiet >/dev/null || exit 1; }

# Rows of random numbers: rows ROWS COLUMNS EXPRESSION, of r() in 0..1
rows() {
	awk -v rows="$1" -v columns="$2" 'function r() { seed = (seed * 16807 + 11) % 2147483647; return seed / 2147483647 }
	BEGIN { seed = 12345; for (i = 0; i < rows; i++) for (k = 0; k < columns; k++)
		printf "%s%s", '"$3"', k + 1 < columns ? "," : "\n" }'
}

# Outputs of NAME for a table of cases.
outputs() {
	"$MICROPROP" predict "$1.safetensors" "$2" --output y.csv >/dev/null || exit 1
	tail -n +2 y.csv >"$1.y"
}

models='letters spirals parity iris mixed house temporal'
E=$SOURCE_DIR/examples
train "$E/letters.topo" --epochs 2 --save letters.safetensors
rows 1000 203 'r() < 0.04' >letters.x
train "$E/spirals.topo" --epochs 3000 --save spirals.safetensors
rows 1000 2 '2 * r() - 1' >spirals.x
train "$E/parity-4.topo" --epochs 300 --save parity.safetensors
rows 1000 4 'r() < 0.5' >parity.x
train "$E/iris.csv" --epochs 40 --save iris.safetensors
rows 1000 4 '0.1 + 7.8 * r()' >iris.x
train "$E/temporal-xor.topo" --epochs 5 --save temporal.safetensors
rows 1000 1 'r() < 0.5' >temporal.x

# A table of numbers with gaps, seconds since 1970 and categories: two classes, and a number to foretell.
rows 1000 4 'r()' | awk -F, 'BEGIN { split("red green blue", name, " "); print "size,time,colour,kind,price" >"table.csv"; print "size,time,colour" >"new.csv" }
	{ size = $1 < 0.1 ? "" : sprintf("%.3f", 10 * $1); time = 1700000000 + int(100000 * $2); c = int(3 * $3)
	  print size "," time "," name[c + 1] "," ($1 + $4 > 1 ? "yes" : "no") "," sprintf("%.2f", 100 * $2 + 20 * c) >"table.csv"
	  print size "," time "," name[c + 1] >"new.csv"
	  print (size == "" ? "nan" : size) "," time "," c >"mixed.cases" }'
categories=$(awk -F, 'NR > 1 { print $3 }' table.csv | sort -u | tr '\n' ' ')
awk -F, -v order="$categories" 'BEGIN { n = split(order, name, " "); for (i = 1; i <= n; i++) at[name[i]] = i - 1; split("red green blue", word, " ") }
	{ print $1 "," $2 "," at[word[$3 + 1]] }' mixed.cases >mixed.x
cp mixed.x house.x
cut -d, -f1-4 table.csv >kind.csv
cut -d, -f1-3,5 table.csv >price.csv
train kind.csv --epochs 30 --save mixed.safetensors
train price.csv --epochs 30 --save house.safetensors
for name in letters spirals parity temporal; do outputs $name $name.x; done
outputs mixed new.csv
outputs house new.csv
{ echo 'sepal length,sepal width,petal length,petal width'; cat iris.x; } >iris.csv
outputs iris iris.csv
