# Training that diverges: what is said, what is kept, and that launch does not try for ever.
net
sed 's/out 1 output/out 1 linear output/' xor.topo >linear.topo
t train linear.topo --rate 3 --momentum 0 --quiet --until never --run runs/a --save w.safetensors
ls runs/a
ls w.safetensors 2>/dev/null
t test linear.topo runs/a/best.safetensors make:xor --json
t train linear.topo --epochs 2 --quiet --save w.safetensors --json
cp w.safetensors before.safetensors
t train linear.topo --rate 1e6 --quiet --until never --save w.safetensors
cmp w.safetensors before.safetensors && echo untouched
t launch -- train linear.topo --rate 1e6 --quiet --until never --save w.safetensors
cmp w.safetensors before.safetensors && echo untouched
t train linear.topo --rate 1e6 --batch 1 --quiet --until never --guard full
