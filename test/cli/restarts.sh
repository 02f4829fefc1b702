# Many seeds: the table, the JSON object, what is saved is the best seed's run; what does not go together.
net
mask() {
	sed -E -e 's/^searched for .* MCPS/searched for TIME, N seeds\/s at N MCPS/' -e 's/"(restarts_seconds|seeds_per_second|restarts_mcps)": [-+.0-9e]+/"\1": N/g'
}
t train xor.topo --restarts 20 --threads 2 | mask
t train xor.topo --restarts 3 --seed 7 --json | mask
t train xor.topo --restarts 3 --target ref --json | mask
t train xor.topo --restarts 5 --epochs 10 | mask

# Each seed alone.
"$MICROPROP" train xor.topo --restarts 20 --json | grep -o '"seed": [^}]*' >seeds
for seed in $(seq 20); do
	alone=$("$MICROPROP" train xor.topo --seed $seed --json | grep -o '"fingerprint": "[^"]*"')
	grep -q "\"seed\": $seed,.*$alone" seeds || echo "seed $seed differs: $alone"
done

# The best one's run, saved.
best=$("$MICROPROP" train xor.topo --restarts 20 --save many.safetensors --run many --json | grep -o '"best_seed": [0-9]*' | grep -o '[0-9]*')
"$MICROPROP" train xor.topo --seed $best --save one.safetensors --run one --json >/dev/null
echo "best seed $best"
t test xor.topo many.safetensors --json
t test xor.topo one.safetensors --json
ls many
grep -o '"seed": [0-9]*' many/args.json

# Refused.
t train xor.topo --restarts 0
t train xor.topo --restarts many
t train xor.topo --restarts 3 --resume one.safetensors
t train xor.topo --restarts 3 --load one.safetensors
t train xor.topo --restarts 3 --time 5
t train xor.topo --restarts 3 --patience 5
t train xor.topo --restarts 3 make:parity:3
sed 's/out 1 output/out 1 linear output/' xor.topo >linear.topo
t train linear.topo --restarts 3 --rate 1e6 --quiet

# Stopped, once the program has asked for the signal.
"$MICROPROP" train xor.topo --until never --epochs 1000000000 --restarts 3 >stdout 2>stderr &
for tries in $(seq 500); do
	grep -qs '^SigCgt:.*4003$' /proc/$!/status && break
	sleep 0.02
done
kill -s TERM $!
wait $!
echo "exit $?"
cat stderr
sed -E 's/^searched for .*/searched/' stdout
