-- Nobody reads it any more. A PDP of the version before writes the column, and now writes null.
alter table membership alter column written_in drop default;
