name:a 2 [0 i:0 t:0;
