# A search over settings: the same for any number of threads, can be interrupted, ensembles are one network.
awk 'BEGIN { print "a,b,kind"; for (i = 0; i < 90; i++) { a = (i * 7) % 19 - 9; b = (i * 11) % 17 - 8; print a "," b "," (a * b > 0 ? "same" : a * b < 0 ? "other" : "none") } }' >sign.csv
t tune sign.csv --trials 9 --folds 3 --threads 1 --quiet --json | sed 's/"seconds": [^,]*/"seconds": N/' >one
t tune sign.csv --trials 9 --folds 3 --threads 2 --quiet --json --force | sed 's/"seconds": [^,]*/"seconds": N/' >two
tail -1 one | sed 's/.*"best": \[\([^}]*}\).*/\1/'
sed 1d one >a; sed 1d two >b; cmp a b && echo "the same with two threads"
t test sign.safetensors sign.csv | grep -E "cases|accuracy"
t tune sign.csv --trials 9 --folds 3 --quiet --no-save --log log --json >/dev/null
head -20 log | tail -19 >cut; head -1 log >log2; sed 1d cut >>log2
t tune sign.csv --trials 9 --folds 3 --quiet --no-save --log log2 --json | sed 's/"seconds": [^,]*/"seconds": N/; s/"networks": [0-9]*/"networks": N/; s/"weights_file": [^,]*/"weights_file": N/' >three
sed 's/"networks": [0-9]*/"networks": N/; s/"weights_file": [^,]*/"weights_file": N/' a >four; sed 1d three | cmp - four && echo "the same when begun again"
t tune sign.csv --trials 9 --folds 3 --quiet --no-save --log log --seed 2
t tune sign.csv --trials 9 --folds 3 --ensemble 3 --save three.safetensors --quiet | tail -2
t show three.safetensors --stage net | grep group
t test three.safetensors sign.csv | grep -E "cases|accuracy"
t tune sign.csv
t tune sign.csv --no-save --trials 0
t tune sign.csv --no-save --folds 1
t tune sign.csv --no-save --seconds x
t tune missing.csv --no-save
