# Looking inside a trained network.
net
t train xor.topo --target ref --save w.safetensors --json >/dev/null
printf 'a,b\n0,1\n1,1\n' >cases.csv
t predict xor.topo w.safetensors cases.csv --group hidden
t predict xor.topo w.safetensors cases.csv --group in
t predict xor.topo w.safetensors make:xor --group out --output out.csv
cat out.csv
t predict xor.topo w.safetensors cases.csv --group hidden --json
t predict xor.topo w.safetensors make:xor --group hidden --output h.npy --json
head -c 128 h.npy | tail -c +12 | tr -d ' '
t predict xor.topo w.safetensors cases.csv --group hiden
t predict xor.topo w.safetensors cases.csv --group hidden --guess
t predict xor.topo w.safetensors cases.csv --group hidden --target gf11
