-- Passwords whose hashes another system made: how many there are, and of which cost.
create index user_account_imported_password on user_account (user_id) where password_hash not like '$scrypt$ln=15,r=8,p=3$%';
