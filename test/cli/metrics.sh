# Metrics as CSV, every case, a model that shows its columns and the metrics of the rows held out.
awk 'BEGIN { print "id,size,colour,kind"; for (i = 0; i < 60; i++) { s = (i * 7) % 23; print "n" i "," (i % 11 ? s : "") "," (i % 3 ? "red" : "\"pale, blue\"") "," (s > 14 ? "large" : s > 6 ? "mid" : "small") } }' >kinds.csv
t train kinds.csv --names id --epochs 150 --quiet | head -14
t show kinds.safetensors
t show kinds.safetensors --json | sed 's/.*"task"/"task"/; s/"log_loss": [^,]*,/.../; s/[0-9]\.[0-9]*/#/g'
head -4 kinds.csv >few.csv
t test kinds.safetensors few.csv --cases | sed 's/[0-9]\.[0-9e-]*/#/g'
t test kinds.safetensors few.csv --cases=cases.csv --csv metrics.csv
sed 's/[0-9]\.[0-9e-]*/#/g' cases.csv metrics.csv
t test kinds.safetensors few.csv --cases=cases.txt --json | sed 's/.*\("outputs_file".*\), "accuracy.*/\1/'
wc -l <cases.txt
t test kinds.safetensors few.csv --cases --json | sed 's/.*"case_list"/"case_list"/; s/[0-9]\.[0-9e-]*/#/g'
t test kinds.safetensors few.csv --cases cases.csv
t test kinds.safetensors few.csv --csv no/such/folder.csv
t test kinds.safetensors few.csv --cases=

# Numbers: residuals in the units of the table; several targets are told apart by name.
awk 'BEGIN { print "a,b,price,cost"; for (i = 0; i < 60; i++) print i % 7 "," (i * 5) % 11 "," 1000 + 100 * (i % 7) "," 5 - (i * 5) % 11 + 0.5 }' >price.csv
t train price.csv --targets price,cost --epochs 300 --quiet --json >/dev/null
head -4 price.csv >few.csv
t test price.safetensors few.csv --cases=cases.csv | head -8 | sed 's/  *[0-9.]*$//'
awk -F, 'NR == 1 { print; next } { off = $2 - $3 - $4; print $1, $2, $5, off * off < 1e-6, int($4 / 100), int($7) }' cases.csv
t show price.safetensors --json | sed 's/.*"metrics"/"metrics"/; s/[0-9]\.[0-9e-]*/#/g'

# Cases without a target are listed, and do not count.
printf 'size,colour,kind\n20,red,large\n3,red,\n' >gap.csv
t test kinds.safetensors gap.csv --cases | sed 's/[0-9]\.[0-9e-]*/#/g'

# Figures.
t test price.safetensors few.csv --figures figures/price | tail -1
t test kinds.safetensors kinds.csv --figures figures --json | sed 's/.*"figures_folder"/"figures_folder"/; s/, "accuracy.*//'
ls figures figures/price
sed -n 's/.*<title>/<title>/p' figures/*.svg
t test kinds.safetensors kinds.csv --figures kinds.csv

# Topologies: `right` only where a best guess is one.
cat >bits.topo <<'T'
defaults 1989
group in 2 input
group out 3 sigmoid output
connect in, true -> out
train until never epochs 400
T
printf 'a,b,x,y,z\n0,0,0,0,1\n0,1,1,0,1\n1,0,1,0,1\n1,1,1,1,1\n' >bits.csv
t train bits.topo bits.csv --targets x,y,z --test bits.csv --quiet --save bits.safetensors | sed -n 3,10p
t test bits.topo bits.safetensors bits.csv --targets x,y,z --cases | sed '/measured/d; s/[0-9]\.[0-9e-]*$/#/'
sed 's/sigmoid/linear/; s/out 3/out 1/' bits.topo >line.topo
printf 'a,b,y\n0,0,1.5\n0,1,2.5\n1,0,4\n1,1,5\n' >line.csv
t train line.topo line.csv --targets y --quiet | sed -n 3,10p
printf 'a,b,y\n0,0,-1\n0,1,1\n1,0,1\n1,1,1\n' >sides.csv
t train line.topo sides.csv --targets y --quiet | sed -n 3,8p
