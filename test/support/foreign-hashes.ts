// Password hashes of other programs, computed with low cost parameters.
import type { HashFormat } from '../../src/accounts/hashes/foreign-hash.ts'

interface ForeignVector {
  readonly system: string
  readonly format: HashFormat
  readonly password: string
  readonly hash: string
  /** The text that the gateway stores, if it differs from `hash`. */
  readonly stored?: string
}

const password = 'un mot de passe'

const firebaseKey = 'jxspr8Ki0RYycVU8zykbdLGjFQ3McFUH0uiiTvC8pVMXAn210wjLNmdZJzxUECKbm0QsEmYUSDzZvpjeJ9WmXA=='
const supabaseKey = 'ou9tdYTGyYm8kuR6Dt0Bp0kDuAYoXrK16mbZO4yGwAn3oLspjnN0/c41v8xZnO1n14J3MjKj1b2g6AUCAlFwMw=='

export const foreignVectors: readonly ForeignVector[] = [
  {
    // php -r 'echo password_hash("un mot de passe", PASSWORD_ARGON2ID, ["memory_cost"=>8192,"time_cost"=>1,"threads"=>1]);'
    system: 'PHP 8.2',
    format: 'argon2id',
    password,
    hash: '$argon2id$v=19$m=8192,t=1,p=1$WElKYklvci9RMFpTU1pvMQ$bUu63xocU/IHVGDCcn61KUVhEuEAY/oTY3sTZR3s4q0',
  },
  {
    // php -r 'echo password_hash("un mot de passe", PASSWORD_ARGON2I, ["memory_cost"=>8192,"time_cost"=>3,"threads"=>1]);'
    system: 'PHP 8.2',
    format: 'argon2i',
    password,
    hash: '$argon2i$v=19$m=8192,t=3,p=1$UFUzM080aTNwZGg3azFaNA$x04/Il1yArzH6MYf1P/bjzoxb93oXaWJx38PNAuXpQI',
  },
  {
    // django.contrib.auth.hashers.make_password('un mot de passe', hasher='argon2')
    system: 'Django 3.2',
    format: 'argon2id',
    password,
    hash: 'argon2$argon2id$v=19$m=102400,t=2,p=8$RU9XRUNUSzRRNXFkaDFOODFNSDJ5VA$0rAhM+Fy7+gJPsM7wublTg',
    stored: '$argon2id$v=19$m=102400,t=2,p=8$RU9XRUNUSzRRNXFkaDFOODFNSDJ5VA$0rAhM+Fy7+gJPsM7wublTg',
  },
  {
    // php -r 'echo password_hash("un mot de passe", PASSWORD_BCRYPT, ["cost"=>5]);'
    system: 'PHP 8.2',
    format: 'bcrypt',
    password,
    hash: '$2y$05$NqeBhh0B9mATtGfoX4qnhOx1YfTY2E8SaBcAcax5gk/vLv6KmxBvu',
  },
  {
    // htpasswd -bnBC 5 '' 'un mot de passe'
    system: 'Apache htpasswd 2.4',
    format: 'bcrypt',
    password,
    hash: '$2y$05$444idJYI92.IKZrUzmKrLOC9RaxTMJxI3JdlpwYpbU45EOquwtkh2',
  },
  {
    // bcrypt.hashpw('un mot de passe'.encode(), bcrypt.gensalt(5))
    system: 'Python bcrypt 3.2',
    format: 'bcrypt',
    password,
    hash: '$2b$05$fH4CAW0UPUna9KlqCinpsugrrHCPgIHfUbHC3gPVsh2PacsULyMNi',
  },
  {
    // bcrypt.hashpw('un mot de passe'.encode(), bcrypt.gensalt(5, b'2a'))
    system: 'Python bcrypt 3.2',
    format: 'bcrypt',
    password,
    hash: '$2a$05$d0SXcQWqerj7jA0JRnOlPul0/5gwgyGQBJA7WjxdVz2cGvt9z1.wK',
  },
  {
    // https://www.openwall.com/crypt/ (crypt_blowfish, wrapper.c)
    system: 'crypt_blowfish',
    format: 'bcrypt',
    password: 'U*U',
    hash: '$2a$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW',
  },
  {
    // django.contrib.auth.hashers.make_password('un mot de passe')
    system: 'Django 3.2',
    format: 'pbkdf2_sha256',
    password,
    hash: 'pbkdf2_sha256$260000$QYntzyeUV52mnbfPkDieRb$/AZoDJYxNCf9Y7mm9j8HaZNJ9rFhEI+B2GiziPBTwFA=',
  },
  {
    // passlib.hash.pbkdf2_sha256.using(rounds=1000).hash('un mot de passe')
    system: 'passlib 1.7.4',
    format: 'pbkdf2_sha256',
    password,
    hash: '$pbkdf2-sha256$1000$816LMUZozbn3HmOMsdb63w$XuzitW.yDWoYxFW5Wa5sN6HGI8NWg5AzAazaTou1ffU',
  },
  {
    // passlib.hash.pbkdf2_sha512.using(rounds=1000).hash('un mot de passe')
    system: 'passlib 1.7.4',
    format: 'pbkdf2_sha512',
    password,
    hash: '$pbkdf2-sha512$1000$QWjtPec8h3BuzXlv7d27Nw$0elWlU2a/wgixnmA1aKtrFIWoszYNh3Pjz8ZoJGRo/q4HVHfe.x2o0HnkfUSO2lEdv5Rl7YkuovNz5dYnGRu7w',
  },
  {
    // Ory Kratos, hash/hasher_test.go
    system: 'Ory Kratos',
    format: 'pbkdf2_sha256',
    password: 'test',
    hash: '$pbkdf2-sha256$i=100000,l=32$1jP+5Zxpxgtee/iPxGgOz0RfE9/KJuDElP1ley4VxXc$QJxzfvdbHYBpydCbHoFg3GJEqMFULwskiuqiJctoYpI',
  },
  {
    // Ory Kratos, hash/hasher_test.go
    system: 'Ory Kratos',
    format: 'pbkdf2_sha512',
    password: 'test',
    hash: '$pbkdf2-sha512$i=100000,l=32$bdHBpn7OWOivJMVJypy2UqR0UnaD5prQXRZevj/05YU$+wArTfv1a+bNGO1iZrmEdVjhA+lL11wF4/IxpgYfPwc',
  },
  {
    // passlib.hash.scrypt.using(rounds=10).hash('un mot de passe')
    system: 'passlib 1.7.4',
    format: 'scrypt',
    password,
    hash: '$scrypt$ln=10,r=8,p=1$UgoBQMjZ2/u/9x5DaE3JGQ$alGfOw7W9Iuf30w9cEMm6KDEMtUIknWFfUuoB5lSGvM',
  },
  {
    // Ory Kratos, hash/hasher_test.go
    system: 'Ory Kratos',
    format: 'scrypt',
    password: 'test',
    hash: '$scrypt$ln=16384,r=8,p=1$2npRo7P03Mt8keSoMbyD/tKFWyUzjiQf2svUaNDSrhA=$MiCzNcIplSMqSBrm4HckjYqYhaVPPjTARTzwB1cVNYE=',
  },
  {
    // hashlib.scrypt('un mot de passe'.encode(), salt=b'a salt of Ory 16', n=2048, r=8, p=2, dklen=64)
    system: 'Python hashlib 3.11',
    format: 'scrypt',
    password,
    hash: '$scrypt$ln=2048,r=8,p=2$YSBzYWx0IG9mIE9yeSAxNg==$W86EGm0TChuX1Pwn5H8FjU0d8/dg1igQz1E83RpjJqs8MCma6F+hhkpkVpVNW/qMfcY94gpl4aMuAlBXGCPdCA==',
  },
  {
    // https://github.com/firebase/scrypt, README.md
    system: 'Firebase',
    format: 'fbscrypt',
    password: 'user1password',
    hash: `$fbscrypt$v=1,n=14,r=8,p=1,ss=Bw==,sk=${firebaseKey}$42xEC+ixf3L2lw==$lSrfV15cpx95/sZS2W9c9Kp6i/LVgQNDNC/qzrCnh1SAyZvqmZqAjTdn3aoItz+VHjoZilo78198JAdRuid5lQ==`,
  },
  {
    // Supabase Auth, internal/crypto/password_test.go
    system: 'Supabase',
    format: 'fbscrypt',
    password: 'mytestpassword',
    hash: `$fbscrypt$v=1,n=14,r=8,p=1,ss=Bw==,sk=${supabaseKey}$C0sHCg9ek77hsg==$zKVTMvnWVw5BBOZNUdnsalx4c4c7y/w7IS5p6Ut2+CfEFFlz37J9huyQfov4iizN8dbjvEJlM5tQaJP84+hfTw==`,
  },
]
