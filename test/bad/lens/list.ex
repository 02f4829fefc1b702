name:a 2 [5] i:0 t:0;
