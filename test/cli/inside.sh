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

# Damaged networks.
t train example:encoder-8-3-8 --target ref --epochs 300 --save e.safetensors --json >/dev/null
t lesion example:encoder-8-3-8 e.safetensors --units code --share 0..1:0.25 --repeats 5 --svg l.svg --csv l.csv
head -2 l.csv
head -c 60 l.svg; echo
t lesion example:encoder-8-3-8 e.safetensors make:encoder:8-3 --links 'code->output' --share 0,0.5 --repeats 2 --sets 'low=1..4,high=5..8' --json
t lesion example:encoder-8-3-8 e.safetensors --units nothing
t lesion example:encoder-8-3-8 e.safetensors --svg no/such/folder.svg
t lesion example:encoder-8-3-8

# What units have learnt.
t analyze example:encoder-8-3-8 e.safetensors --sets 'low=1..4,high=5..8' --figures figures --csv items.csv --distances d.csv --top 3
ls figures
head -2 items.csv
head -2 d.csv
t analyze example:encoder-8-3-8 e.safetensors --top 1 --distance cosine --json | head -c 700; echo
t analyze example:encoder-8-3-8 e.safetensors --group nothing

# Ticks of a settling network.
t train example:triangle --epochs 20 --save t.safetensors --json >/dev/null
t predict example:triangle t.safetensors --group cleanup --tick 3 --output c.csv make:triangle
head -2 c.csv | cut -c1-80
t predict example:triangle t.safetensors make:triangle --group cleanup --tick 9
t predict example:triangle t.safetensors make:triangle --tick 3
t lesion example:triangle t.safetensors --units hidden,sound --links 'meaning->meaning' --share 0,0.3,1 --repeats 3

# Figures of a network.
t show example:triangle --figure network --svg net.svg
grep -c '<path' net.svg
t show example:encoder-8-3-8 e.safetensors --figure hinton
t show example:encoder-8-3-8 e.safetensors --figure hinton --block 'code[1:2]->output' --svg h.svg --json
t show example:triangle t.safetensors --figure activations --group cleanup --case 2
t show example:triangle --figure network
t show example:triangle --figure pie --svg pie.svg
t show example:triangle t.safetensors --figure hinton --block 'letters->meaning'
t show example:triangle t.safetensors --figure hinton --block 'letters[5:99]->hidden'
t show example:triangle t.safetensors --figure activations --case 81
t show example:triangle t.safetensors
t show example:triangle --svg x.svg

# Files of every N-th epoch: outputs are those of the checkpoint.
t train example:triangle --epochs 25 --run run --outputs-every 10 --checkpoints-every 5 --svg curve.svg --json >/dev/null
ls run
t predict example:triangle run/epoch-000010.safetensors make:triangle --output o.npy
cmp o.npy run/outputs-000010.npy && echo same
head -c 60 curve.svg; echo
t train example:xor --outputs-every 5
t train example:xor --run other --checkpoints-every 0
t train example:xor --run other --checkpoints-every 5 --report 3

# Every case: output groups, reaction times, rivals.
t test example:triangle run/epoch-000025.safetensors --cases | sed -n '9,12p'
t test example:triangle run/epoch-000025.safetensors --cases=c.csv --json >/dev/null
head -3 c.csv
t test example:encoder-8-3-8 e.safetensors --cases | sed -n '/case/,/ 3 /p'
