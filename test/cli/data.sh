# Describing, converting, cutting, scaling.
t data make:xor
t data --make xor
t data --make parity:3 --json
t data --make xor xor.csv
cat xor.csv
t data xor.csv xor.npz
t data xor.npz xor.txt --json
cat xor.txt
t data xor.txt --json

# Everything that is kept comes back.
for to in npz npy csv txt; do
	t data --make encoder:4-2 a.$to
done
ls
t data --make temporal-xor t.npz
t data t.npz

t data --make spirals s.npz --split 0.75 --seed 3 --scale zscore
t data s-train.npz
t data --make spirals one.csv two.csv --split 0.5 --json
t data --make parity:4 p.csv
t data p.csv --first 3 --json
cat >flowers.csv <<-END
	length,width,kind
	1,2,rose
	3,4,tulip
	5,7,rose
END
t data flowers.csv
t data flowers.csv --inputs width --targets length --json
t data flowers.csv --targets hight

# Names of any bytes are valid JSON.
odd=$(printf 'odd "\t\\\377\303\244.csv')
cp flowers.csv "$odd"
"$MICROPROP" data "$odd" --json | grep -o '"name": "[^,]*csv"'
