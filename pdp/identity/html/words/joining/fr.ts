/** French: how people come in by an invitation. */
import type { Joining } from './en.ts'

export const FRENCH_JOINING: Joining = {
  title: 'Vous êtes invité',
  lead: '{inviter} invite {email} dans cette organisation :',
  organization: 'Dans l’organisation',
  tier: 'En tant que',
  roles: 'Avec les rôles',
  until: 'Valable jusqu’au',
  somebody: 'Une personne qui s’en occupe',
  tiers: {
    owner: 'propriétaire',
    admin: 'administrateur',
    developer: 'développeur',
    member: 'membre',
    viewer: 'lecteur',
  },
  accept: 'Accepter',
  decline: 'Refuser',
  newHere: 'Il n’y a pas encore de compte avec cette adresse. Choisissez un mot de passe, et il sera créé.',
  name: 'Votre nom (si vous voulez)',
  create: 'Créer le compte et accepter',
  replaces: 'Vous êtes connecté en tant que {person}. Cette connexion prendra fin quand vous créerez le compte.',
  notYou: 'L’invitation est pour un autre compte : vous êtes connecté en tant que {person}.',
  signInAs: 'Se connecter avec l’adresse invitée',
  doneTitle: 'Vous en faites maintenant partie',
  done: 'Vous êtes membre de {organization}.',
  declinedTitle: 'Vous avez refusé',
  declined: 'L’invitation à {organization} n’est plus valable.',
  account: 'Vers votre compte',
  failed: {
    title: 'Cette invitation n’est plus valable',
    gone: 'Elle a déjà servi, a été retirée ou remplacée par une plus récente, a expiré ou n’est pas complète.',
    unbacked:
      'La personne qui vous a invité n’en a plus le droit. Rien n’a été modifié. Demandez une autre invitation.',
    changed: 'Un rôle qu’elle donne n’existe plus. Rien n’a été modifié. Demandez une autre invitation.',
    member: 'Vous êtes déjà membre de cette organisation. Rien n’a été modifié.',
    suspended:
      'L’organisation a suspendu votre adhésion. Rien n’a été modifié. Adressez-vous à qui s’occupe de l’organisation.',
    taken:
      'Entre-temps, un compte a été créé avec cette adresse. Ouvrez de nouveau le lien du message et connectez-vous.',
  },
  mail: {
    subject: 'Invitation à {organization} chez {host}',
    asked: 'Vous êtes invité à rejoindre {organization} chez {host}.',
    open: 'Voyez qui vous invite, puis acceptez ou refusez, ici :',
    otherwise:
      'Le lien est valable sept jours, et une seule fois. Si vous ne savez pas de quoi il s’agit, ne faites rien.',
  },
}
