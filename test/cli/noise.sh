# SPDX-License-Identifier: MIT
# Noise and dropout, settings of single groups and blocks: the language, tests with noise, resuming, refusals.
cat >net.topo <<'EOF'
defaults 1989
group in     8 input
group hidden 6 sigmoid gain 1.5
group out    8 sigmoid output error cross-entropy error-scale 2 criterion 0.3 zero-error-radius 0.05
connect in -> hidden decay 0.001 limits 4
connect hidden -> out tied in -> hidden transposed
connect true -> hidden, out
noise in uniform 0.05
noise hidden net gaussian 0.1
noise hidden gaussian 0.05
noise in -> hidden gaussian 0.02
dropout hidden 0.1
train rate 0.1 momentum 0.5 epochs 200 until never
data "make:encoder:8-6"
EOF
t show net.topo --stage net
t show net.topo --json | sed 's/.*"group_list"/"group_list"/'
t train net.topo --save whole.safetensors --quiet --json | sed 's/.*\("fingerprint": "[0-9a-f]*"\).*/\1/'
t train net.topo --save half.safetensors --epochs 77 --quiet
t train net.topo --resume half.safetensors --epochs 200 --threads 2 --quiet --json | sed 's/.*\("fingerprint": "[0-9a-f]*"\).*/\1/'
for options in "" "--noise" "--noise --seed 2" "--noise --threads 3" "--noise --target ref"; do
	t test whole.safetensors make:encoder:8-6 $options --json | sed 's/.*"error": \([0-9.]\{8\}\).*/\1/'
done
t train net.topo --target gf11
t train net.topo --precision bf16
cat >bad.topo <<'EOF'
group in 8 input gain 2
group memory 4 context
group hidden 4 error squared
group out 8 output error squared target-radius 0.1
group more 8 output gain 1 gain 2
connect in, memory -> hidden limits 2 1
connect in -> hidden
connect hidden -> out tied in -> hidden
connect hidden -> out tied in -> memory
copy hidden -> memory
noise memory gaussian 0.1
noise in net gaussian 0.1
noise in[2] gaussian 0.1
noise hidden -> in uniform 0.1
noise hidden poisson 0.1
dropout hidden 1.5
EOF
t show bad.topo
cat >out.topo <<'EOF'
group in 8 input
group out 8 sigmoid output
connect in -> out
noise out gaussian 0.1
data "make:encoder:8-6"
EOF
t train out.topo
