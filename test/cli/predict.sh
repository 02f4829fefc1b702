# Outputs for cases without targets.
net
t train xor.topo --target ref --save w.safetensors --json >/dev/null
printf 'a,b\n0,1\n1,1\n' >cases.csv
printf 'a,b,c\n0,1,1\n1,1,0\n' >labelled.csv
t predict xor.topo w.safetensors cases.csv
t predict xor.topo w.safetensors labelled.csv
t predict xor.topo w.safetensors make:xor --guess
t predict xor.topo w.safetensors cases.csv --json --guess
t predict xor.topo w.safetensors cases.csv --output out.csv --guess
cat out.csv
t predict xor.topo w.safetensors cases.csv --output out.npy
t predict xor.topo w.safetensors cases.csv --output out.txt --json
cat out.txt
"$MICROPROP" predict xor.topo w.safetensors - <cases.csv
cat cases.csv | "$MICROPROP" predict xor.topo w.safetensors
cat labelled.csv | "$MICROPROP" predict xor.topo w.safetensors -
printf 'a,b,c,d\n1,2,3,4\n' | "$MICROPROP" predict xor.topo w.safetensors -
echo "exit $?"
t predict xor.topo w.safetensors cases.csv --output no/such/folder.csv
"$MICROPROP" predict xor.topo w.safetensors cases.csv >/dev/full
echo "exit $?"

# Text without names and headers; several outputs, so the best guess is the largest.
echo 0 1 | "$MICROPROP" predict xor.topo w.safetensors -
cat >enc.topo <<-END
	defaults 1989
	group in 4 input
	group out 4 output
	connect in, true -> out
	data "make:encoder:4-2"
END
t train enc.topo --target ref --save e.safetensors --json >/dev/null
printf '0 0 1 0\n1 0 0 0\n' >two.txt
t predict enc.topo e.safetensors two.txt --guess
t predict enc.topo e.safetensors two.txt
