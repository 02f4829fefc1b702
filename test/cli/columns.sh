# Columns of CSV files are found by their names, in any order; names, classes and scales survive conversions.
awk 'BEGIN {
	print "sl,sw,pl,pw,species"; split("setosa versicolor virginica", kind, " ")
	for (i = 0; i < 90; i++) {
		k = i % 3; a = (i * 37 % 11) / 10; b = (i * 53 % 13) / 10
		print 5 + k * 0.6 + a ",", 3.4 - k * 0.3 + b ",", 1.5 + k * 2 + a ",", 0.3 + k * 0.9 + b / 2 "," kind[k + 1]
	}
}' | tr -d ' ' >iris.csv
awk -F, -v OFS=, '{ print $5, $4, (NR == 1 ? "note" : "n" NR), $1, $2, $3 }' iris.csv >moved.csv
cut -d, -f1,2,4,5 iris.csv >less.csv
awk -F, -v OFS=, '{ print $4, $3, $2, $1 }' iris.csv >bare.csv
sed 1d iris.csv >headless.csv
cat >iris.topo <<-END
	defaults 1989
	group in 4 input
	group hidden 5
	group out 3 output
	connect in, true -> hidden
	connect hidden, true -> out
	train rate 0.1 batch 1 epochs 100 until never
	data "iris.csv"
END
t train iris.topo --test moved.csv --quiet --target ref --save w.safetensors | grep -E '^microprop|right|note|column'
for file in iris moved headless; do
	t test iris.topo w.safetensors $file.csv | grep right
	"$MICROPROP" predict iris.topo w.safetensors $file.csv --guess >$file.guess
done
"$MICROPROP" predict w.safetensors bare.csv --guess >bare.guess
cmp iris.guess moved.guess && cmp iris.guess headless.guess && cmp iris.guess bare.guess && echo "the same guesses"
t test w.safetensors moved.csv --json | sed 's/.*"columns"/"columns"/'
t test iris.topo w.safetensors less.csv
t predict iris.topo w.safetensors less.csv
t predict iris.topo w.safetensors less.csv --inputs sl,sw,pw,species
t test w.safetensors bare.csv
sed '2s/^5,/,/' iris.csv >gap.csv
t test w.safetensors gap.csv
t train iris.topo moved.csv --resume w.safetensors --epochs 101 --quiet | grep right
t train iris.topo less.csv --load w.safetensors --epochs 1 --quiet

# Conversions.
t data iris.csv named.npz
t data named.npz back.csv
cmp iris.csv back.csv || head -n 2 back.csv

t data moved.csv moved.npz --inputs pw,pl,sw,sl --targets species --scale zscore
t test w.safetensors moved.npz
t data moved.csv moved.npz --inputs pw,pl,sw,sl --targets species
t test w.safetensors moved.npz | grep right
t data iris.csv scaled.csv --scale zscore
t data iris.csv iris.txt
t data iris.csv iris.npy
t data iris.csv two.csv --inputs sl,sw --targets pw,pl
head -n 2 two.csv

# Scaled inputs and names of classes, together.
t data iris.csv scaled.npz --scale zscore
t train iris.topo scaled.npz --test moved.csv --labels species --target ref --quiet --save s.safetensors | grep -E '^microprop|right|option'
t predict s.safetensors bare.csv --guess | sort | uniq -c
t train iris.topo iris.txt --target ref --quiet --epochs 1 --save t.safetensors >t.log
t predict t.safetensors bare.csv --guess | sort | uniq -c | sed 's/ *[0-9]* //' | head -n 2

# Names of roles.
printf 'a,weight,y\n0,1,0\n1,2,1\n' >weight.csv
t data weight.csv --json | sed 's/,.*//'
printf 'a,name,y\n0,x,0\n1,y,1\n2,z,0\n' >name.csv
t data name.csv
t data name.csv --names name | grep -E 'cases|inputs'
