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
