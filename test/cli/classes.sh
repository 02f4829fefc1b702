# Classes of a CSV file keep their places: in test data, with saved weights, whatever classes the new file has.
cat >flowers.csv <<-END
	length,width,kind
	0,0,tulip
	0,1,rose
	1,0,lily
	0,0.1,tulip
	0.1,1,rose
	1,0.1,lily
END
cat >few.csv <<-END
	length,width,kind
	0.1,0.9,rose
	0,0.05,tulip
END
cat >flowers.topo <<-END
	defaults 1989
	group in 2 input
	group out 3 output
	connect in, true -> out
	train rate 0.5 epochs 200
	data "flowers.csv"
END
t train flowers.topo --target ref --test few.csv --save w.safetensors --until never --json
t test flowers.topo w.safetensors few.csv --json
printf 'length,width\n1,0\n0,1\n' >new.csv
t predict flowers.topo w.safetensors new.csv --guess
t predict flowers.topo w.safetensors few.csv --guess
printf 'length,width,kind\n1,0,daisy\n0,1,\n' >strange.csv
t predict flowers.topo w.safetensors strange.csv --guess --json
t predict flowers.topo w.safetensors strange.csv --targets kind --output out.csv --guess
cat out.csv
printf 'length,width,price\n1,0,12.5\n0,1,unknown\n' >prices.csv
t predict flowers.topo w.safetensors prices.csv --guess
printf 'kind,length,width\ndaisy,1,0\n' >first.csv
t predict flowers.topo w.safetensors first.csv --guess --inputs length,width
t predict flowers.topo w.safetensors first.csv --guess --targets kind
t test flowers.topo w.safetensors strange.csv

# The error that the weights were trained to make small is the one that is measured.
t train flowers.topo --target ref --error cross-entropy --save c.safetensors --epochs 5 --until never --json
t test flowers.topo c.safetensors --json
t test flowers.topo c.safetensors --json --error squared
printf '0 1\n1 1\n' >bare.txt
t test flowers.topo c.safetensors bare.txt
