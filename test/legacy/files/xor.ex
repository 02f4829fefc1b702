# two inputs, one target; listed units are 1
;
name:none i: t:;
name:second i:1 t:0;
name:first i:0 t:0;
name:both i:* t:;
