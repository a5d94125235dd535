-- Up Migration

-- Emails are compared in Unicode NFC. An email that another account has in NFC already stays as it is: its user signs in
-- by typing it as before.
update users u set email = normalize(u.email, nfc)
 where u.email is not nfc normalized
   and not exists (
     select from users other
      where other.id <> u.id and normalize(other.email, nfc) = normalize(u.email, nfc));
