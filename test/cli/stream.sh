# predict -: a line in, a line out, each before the next line is written
net
t train xor.topo --save xor.safetensors --quiet --epochs 300 >/dev/null
mkfifo in out
"$MICROPROP" predict xor.safetensors - <in >out &
exec 3>in 4<out
for case in '0 0' '0,1' '1	0' '1 1'; do
	echo "$case" >&3
	read -r answer <&4
	echo "$case: $answer"
done
# several at once, a comment and a blank line between; the last without a line feed
printf '0 0\n# comment\n\n1 0\n0.5 0.5' >&3
exec 3>&-
cat <&4
wait
# the rows of a table
cat >fruit.csv <<END
weight,colour,kind
120,red,apple
150,green,apple
20,red,cherry
22,red,cherry
140,yellow,apple
19,black,cherry
END
t train fruit.csv --save fruit.safetensors --epochs 200 --hidden 3 --quiet >/dev/null 2>&1
"$MICROPROP" predict fruit.safetensors - --guess <in >out &
exec 3>in 4<out
echo 'colour,weight' >&3
for case in red,130 red,20 blue,; do
	echo "$case" >&3
	read -r answer <&4
	echo "$case: $answer"
done
exec 3>&-
wait
# messages
printf '0 1\n1 2 3\n' | "$MICROPROP" predict xor.safetensors -
echo "exit $?"
"$MICROPROP" predict xor.safetensors - <in >out &
exec 3>in 4<out
echo 0 1 >&3
read -r answer <&4
echo 0 x >&3
exec 3>&-
wait $!
echo "exit $?"
# as a whole: with --json, of data with targets
echo 0 1 | "$MICROPROP" predict xor.safetensors - --json
printf '0,1,1\n1,1,0\n' | "$MICROPROP" predict xor.safetensors -
# contexts keep what a line leaves to the next; a blank line begins a sequence; the same outputs as those of whole sequences
cat >elman.topo <<END
group in 1 input
group h 3 tanh
group memory 3 context
group out 1 output
copy h -> memory start 0.5
connect in, memory, true -> h
connect h, true -> out
train epochs 1
data "elman.txt"
END
printf 'sequence\n1 : 0\n0 : 1\n1 : 1\n0 : 1\nsequence\n1 : 1\n1 : 0\n' >elman.txt
t train elman.topo --save elman.safetensors --quiet --rate 0.1
t predict elman.safetensors elman.txt
"$MICROPROP" predict elman.safetensors - <in >out &
exec 3>in 4<out
for case in 1 0 1 0 '' 1 1; do
	echo "$case" >&3
	[ -z "$case" ] || { read -r answer <&4; echo "$case: $answer"; }
done
printf '\n1\n0\n\n\n# comment\n1\n' >&3
exec 3>&-
cat <&4
wait
# not step by step on other machines: as a whole
printf '1\n0\n' | "$MICROPROP" predict elman.safetensors - --target ref
