-- Up Migration

-- Emails are compared in Unicode NFC. If another account already has the email in NFC, the email is not changed.
-- Its user signs in with the same spelling as before.
update users u set email = normalize(u.email, nfc)
 where u.email is not nfc normalized
   and not exists (
     select from users other
      where other.id <> u.id and normalize(other.email, nfc) = normalize(u.email, nfc));
