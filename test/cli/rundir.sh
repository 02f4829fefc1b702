# A run directory holds everything; a resumed run goes on where its checkpoint stands.
net
t train xor.topo --target ref --until never --epochs 6 --report 2 --run runs/a --json
ls runs/a
cat runs/a/args.json
cat runs/a/metrics.jsonl
t test xor.topo runs/a/best.safetensors make:xor --json
echo '{"epoch": 7, "upda' >>runs/a/metrics.jsonl
t train xor.topo --resume runs/a/last.safetensors --epochs 10 --run runs/a --json
cat runs/a/metrics.jsonl
t train xor.topo --target ref --until never --epochs 10 --report 2 --json

# A folder that holds a run is not written over, and a run that is refused leaves no trace.
t train xor.topo --target ref --run runs/a
cp -r runs/a before
t train xor.topo make:parity:4 --resume runs/a/last.safetensors --run runs/a
diff -r before runs/a && echo untouched
t train xor.topo make:parity:4 --run runs/b/c
ls runs
: >file
t train xor.topo --run file/b

# Killed before its first checkpoint: it begins again.  Two runs do not write to one folder.
mkdir runs/killed
echo '{"epoch": 9}' >runs/killed/metrics.jsonl
: >runs/killed/args.json
t train xor.topo --target ref --until never --epochs 2 --report 2 --run runs/killed --json
cat runs/killed/metrics.jsonl
mkdir runs/other
exec 9>runs/other/metrics.jsonl
flock 9
t train xor.topo --target ref --until never --epochs 2 --run runs/other --quiet 9>&-
ls runs/other
exec 9>&-
t train xor.topo --target ref --until never --epochs 2 --run runs/other --quiet --json
