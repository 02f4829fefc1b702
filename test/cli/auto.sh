# Sizes from the data, and a topology file that says how to read it.
cat >points.csv <<-EOF
	x,y,weight,kind
	0,10,1,a
	1,20,1,a
	2,10,1,b
	3,20,1,b
	4,10,1,c
	5,20,1,c
	EOF
cat >points.topo <<-EOF
	group in auto input
	group hidden 8
	group out auto softmax output
	connect in, true -> hidden
	connect hidden, true -> out
	data "points.csv" weight weight targets kind scale zscore
	EOF
t show points.topo --stage net
t train points.topo --quiet --save w.safetensors
t test points.topo w.safetensors
t predict points.topo w.safetensors points.csv --guess
# The command line wins.
t train points.topo --targets x --inputs y --quiet --epochs 1
t train points.topo points.csv --inputs y --quiet --epochs 1
# Nothing to take a size from.
sed '/^data/d' points.topo >open.topo
t show open.topo
t train open.topo
t train open.topo points.csv --scale zscore --epochs 3 --quiet
t gf11 model open.topo
sed 's/^group in auto/group left 2 input\n&/; s/connect in/connect left, in/' points.topo >left.topo
t train left.topo
# A run that has learnt nothing says so, and what to try.
cat >flat.topo <<-EOF
	defaults 1989
	group in auto input
	group hidden 8
	group out auto output
	connect in -> hidden weights 9
	connect hidden, true -> out
	data "points.csv" weight weight targets kind
	EOF
sed 's/ weight weight//; s/scale.*//' flat.topo >unscaled.topo
t train unscaled.topo --inputs y --quiet --epochs 100 --rate 1
# Words of other programs: the same meaning, or how to convert.
t train points.topo --batch-size 2 --random-state 3 --max-iter 2 --quiet
t train points.topo --lr 0.1
t train points.topo --weight-decay 0.1
t train points.topo --activation relu
cat >words.topo <<-EOF
	group in 2 input
	group h 3 logistic
	group out 1 logistic output
	connect in, bias -> h
	connect h, bias -> out
	train batch-size 4
	EOF
t show words.topo --stage net
echo 'train learning-rate 0.1' >>words.topo
t show words.topo
