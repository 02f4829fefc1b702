# A table without a topology: types found, categories, missing values, classes, a model that knows its columns.
awk 'BEGIN {
	srand(7); print "id,age,city,member,income,plan"
	split("bern basel genf", city, " ")
	for (i = 1; i <= 120; i++) {
		age = 20 + (i * 37) % 50; c = city[1 + i % 3]; member = i % 2; income = 30 + (i * 53) % 70
		plan = age + 20 * (c == "genf") > 55 ? "gold" : member && income > 60 ? "silver" : "basic"
		print i "," (i % 17 ? age : "") "," (i % 19 ? c : "NA") "," member "," income ".5," plan
	}
}' >people.csv
t train people.csv --epochs 60
ls *.safetensors
t train people.csv
t train people.csv --force --no-save --hidden 8,4 --write-topo people.topo --quiet --epochs 3
cat people.topo
t test people.safetensors people.csv
awk -F, -v OFS=, '{ print $6, $5, $3, $2, $4, "extra" }' people.csv >moved.csv
t predict people.safetensors people.csv --guess >a
t predict people.safetensors moved.csv --guess 2>/dev/null >b
sed 1d a >a1; sed 1d b >b1; cmp a1 b1 && echo "the same guesses"
cut -d, -f1-3,5- people.csv >less.csv
t predict people.safetensors less.csv
printf 'age,city,member,income\n30,zug,0,40\n,,1,\n' >new.csv
t predict people.safetensors new.csv
t predict people.safetensors new.csv --json
t show people.safetensors --stage net

# Numbers as targets, in their own units.
awk 'BEGIN { print "a,b,price"; for (i = 0; i < 60; i++) print i % 7 "," (i * 5) % 11 "," 1000 + 100 * (i % 7) - 30 * ((i * 5) % 11) + 0.5 }' >price.csv
t train price.csv --epochs 200 --json | sed 's/.*"accuracy"/"accuracy"/'
printf 'a,b\n0,0\n6,10\n' >ab.csv
t predict price.safetensors ab.csv | awk 'NR > 2 { printf "%d\n", $1 / 50 + 0.5; next } { print }'

# A lone 0 or 1 is a class too.
awk 'BEGIN { print "x,y,inside"; for (i = 0; i < 100; i++) { x = (i * 7) % 20 - 10; y = (i * 13) % 20 - 10; print x "," y "," (x * x + y * y < 50) } }' >disc.csv
t train disc.csv --epochs 100 --quiet --no-save --json | sed 's/.*"accuracy"/"accuracy"/; s/"log_loss": [^,]*, "auc": [^,]*/.../'

# Tables that cannot be learnt.
bad() {
	printf "$1" >bad.csv
	shift
	t train bad.csv --no-save "$@"
}
bad 'a,b\n1,x\n2,x\n3,x\n'
bad 'a,b\n1,2\n'
bad 'a,a,b\n1,2,3\n2,3,4\n'
bad 'a,b\n1,2\n3\n'
bad 'id,v\n1,10\n2,11\n3,12\n4,13\n5,14\n6,15\n7,16\n8,17\n9,18\n10,19\n' --targets id
bad 'a,b\n5,1\n5,2\n5,3.5\n'
bad 'v,k\n1.5,a\n2.5,b\n3.5,a\noops,b\n4.5,a\n5.5,b\n'
bad 'a,b\n1,2\n3,4\n' --task sometimes
bad 'a,b\n1,2\n3,4\n' --hidden 3,,4
bad 'a,b\n1,2\n3,4\n' --holdout 1.5
bad 'a,b\n1,2\n3,4\n' --targets c
bad 'a\n1\n2\n'

# Cross-validation, balanced classes, the best of several seeds by the rows held out.
t train people.csv --no-save --quiet --folds 4 --epochs 20 --json | sed 's/.*"holdout/"holdout/'
t train people.csv --no-save --quiet --balance --restarts 3 --epochs 20 --json | sed 's/.*"holdout/"holdout/'
t train price.csv --no-save --balance
t train people.csv --no-save --folds 1

# Folds that a column tells.
awk -F, -v OFS=, 'NR == 1 { print $0, "part"; next } { print $0, "f" NR % 3 }' price.csv | awk -F, -v OFS=, '{ print $1, $2, $4, $3 }' >folds.csv
t train folds.csv --fold part --no-save --quiet --epochs 50 --json | sed 's/.*"holdout/"holdout/'
t train folds.csv --fold part --folds 2 --no-save --quiet

# Tables as people have them: each is learnt, or refused with a place.
awk 'BEGIN { print "a;b;k"; for (i = 0; i < 40; i++) print i % 7 ",5;" (i * 5) % 11 ",25;" (i % 7 > 3 ? "p" : "q") }' >comma.csv
t train comma.csv --epochs 2 --no-save --json | grep -o '"columns".*'
tr ';,' ',.' <comma.csv >point.csv
t data comma.csv one.npz >/dev/null; t data point.csv two.npz >/dev/null
cmp one.npz two.npz && echo "the same numbers"
{ printf '\357\273\277'; sed 's/$/,\r/' point.csv; } >excel.csv
t train excel.csv --epochs 2 --no-save 2>&1 | head -n 4
bad 'v,k\n1.5,a\n2.5,b\n1e300,a\n4.5,a\n5.5,b\n'
bad 'v,k\n1.5,a\n2.5,b\n-inf,a\n4.5,a\n5.5,b\n'
bad 'age,k\n21,a\n35,b\n44,a\n?,a\n55,b\nold,b\n61,a\n'
bad 'a,b\n'
bad 'a,b\n,\n,\n,\n'
bad 'a,b,k\n1,2,"x\n3,4,y\n'
bad 'a|b|k\n1|2|x\n3|4|y\n'
awk 'BEGIN { for (i = 0; i < 70000; i++) printf "%sc%d", i ? "," : "", i; print ""; for (i = 0; i < 70000; i++) printf "%s1", i ? "," : ""; print "" }' >wide.csv
t train wide.csv --no-save 2>&1 | cut -c1-60

# Inputs in another scale. The model may keep to the rows that were not held out.
t train people.csv --save scaled.safetensors --quiet --epochs 3 --scale range --no-refit --json | grep -o '"offset": [^}]*\|"refit.*'
t train people.csv --save scaled.safetensors --force --quiet --epochs 3 --scale none --json | grep -o '"offset": [^}]*'
t train people.csv --no-save --scale other
