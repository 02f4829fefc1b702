# Tables with columns that are hard to read: weights, roles by name, large numbers, values that were not learnt.
rows() { # rows N HEADER 'AWK EXPRESSION'
	awk -v n="$1" "BEGIN { print \"$2\"; for (i = 0; i < n; i++) print $3 }"
}

# Weights, names, sequences and folds that are none.
rows 30 a,w,y 'i "," (i == 4 ? "abc" : 1) "," i % 2 "a"' >text.csv
for command in train tune; do
	t $command text.csv --weight w --no-save
done
t data text.csv --weight w
rows 30 a,w,y 'i % 7 "," (i == 3 ? -1 : 1) "," i % 2 "a"' >negative.csv
t train negative.csv --weight w --no-save
rows 30 a,w,y 'i % 7 "," 0 "," i % 2 "a"' >zero.csv
t train zero.csv --weight w --no-save
t data zero.csv --weight w
rows 30 a,w,y 'i % 7 "," (i % 9 ? 1 : "") "," i % 2 "a"' >gaps.csv
t train gaps.csv --weight w --no-save | head -n 2
rows 30 a,w,y 'i % 7 "," i % 4 + 0.5 "," i % 2 "a"' >good.csv
t train good.csv --weight w --names w --no-save
t train good.csv --weight w --category w --no-save
t train good.csv --weight w --targets w --no-save
for option in --sequence --names --fold; do
	t train good.csv $option w --no-save --quiet --epochs 2 --json | grep -o '"role": "[a-z]*"' | tr '\n' ' '
	echo
	t train zero.csv $option w --no-save --quiet --epochs 2 >/dev/null
done
rows 120 a,f,y 'i % 7 ",f" i "," i % 2 "a"' >folds.csv
t train folds.csv --fold f --no-save

# Names that give a role.
rows 30 x1,x2,weight,y 'i % 7 "," i % 5 "," 1 + i % 3 "," i % 2' >roles.csv
t train roles.csv --no-save --epochs 2 2>&1 | grep -E '^(inputs|weight|target)'
t train roles.csv --no-save --epochs 2 --targets y 2>&1 | grep -E '^(inputs|weight|target)'

# Numbers that float32 merges.
rows 300 t,y '1600000000 + (i * 7) % 300 "," ((i * 7) % 300 > 150 ? "late" : "early")' >time.csv
t train time.csv --epochs 60 2>&1 | grep -E '^(inputs|not used|accuracy)'
printf 't\n1600000010\n1600000290\n' >when.csv
t predict time.safetensors when.csv --guess
rows 300 a,y 'i % 10 "," 1600000000 + (i * 7) % 300' >later.csv
t train later.csv --no-save --epochs 3 2>&1 | grep '^target'
rows 300 a,y 'i % 3 "," 1600000000 + i % 3' >codes.csv
t train codes.csv --epochs 100 2>&1 | grep -E '^target|^accuracy'
t test codes.safetensors codes.csv | grep '^accuracy'
rows 300 a,y '"1000000." 100000 + (i * 7) % 300 "," ((i * 7) % 300 > 150 ? "p" : "q")' >fine.csv
t train fine.csv --no-save --epochs 60 2>&1 | grep -E '^(inputs|not used|accuracy)'
rows 300 a,y '"1000000000000000" 10 + i % 80 "," i % 2 "q"' >huge.csv
t train huge.csv --no-save --epochs 2 2>&1 | grep -E '^(inputs|not used)|note|remedy|fix|subtract'

# Cases without a target: noted once; nothing to measure by.
rows 60 a,y 'i % 7 "," (i > 57 ? "" : i % 7 > 3 ? "p" : "q")' >few.csv
t train few.csv --epochs 20 2>&1 | grep -c 'left out'
t tune few.csv --trials 2 --no-save 2>&1 | grep -c 'left out'
rows 5 a,y 'i ","' >none.csv
t test few.safetensors none.csv --figures drawn
ls drawn 2>/dev/null
rows 5 a,y 'i "," (i == 2 ? "other" : "p")' >other.csv
t test few.safetensors other.csv

# A category that was not seen.
rows 60 k,y '(i % 3 ? "u" : "v") "," (i % 3 ? 1.5 : 2.5 + i % 2)' >seen.csv
t train seen.csv --epochs 2 --quiet >/dev/null
printf 'k\nu\nnew\n' >one.csv
t predict seen.safetensors one.csv >/dev/null
printf 'k\nu\nnew\nw\n' >two.csv
t predict seen.safetensors two.csv >/dev/null

# Keys of metrics.
t test seen.safetensors seen.csv --json | grep -oE '"(accuracy|rmse|classes|confusion|per_class|holdout_cases)": (null|.)'
t test few.safetensors few.csv --json | grep -oE '"(accuracy|rmse|mae|r2|classes|confusion|per_class|holdout_cases)": (null|.)'

# Several targets of 0 and 1.
rows 80 a,b,p,q 'i % 7 "," i % 5 "," (i % 7 > 3) "," (i % 5 > 2)' >bits.csv
t train bits.csv --targets p,q --epochs 100 --quiet >/dev/null
printf 'a,b\n0,0\n6,0\n6,4\n' >ab.csv
t predict bits.safetensors ab.csv --guess
t predict bits.safetensors ab.csv --guess --json | grep -o '"guesses.*'
t predict bits.safetensors ab.csv --guess --output bits-out.csv
sed 's/[0-9.e-]*,[0-9.e-]*,/.../' bits-out.csv

# Names of columns and classes in npz files; the units are those before the scale.
t data "$SOURCE_DIR/examples/iris.csv" o.npz --targets species --scale zscore >/dev/null
t train o.npz --epochs 30 2>&1 | grep -E '^(inputs|target)'
t test o.safetensors o.npz | grep '^accuracy'
t test o.safetensors "$SOURCE_DIR/examples/iris.csv" | grep '^accuracy'
