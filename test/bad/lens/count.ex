name:a 99999999 I: 0 1 T: 1;
