/** French: signing in with other services. */
import type { Foreign } from './en.ts'

export const FRENCH_FOREIGN: Foreign = {
  signInWith: 'Se connecter avec {provider}',
  title: 'Connexion avec d’autres services',
  lead: 'Avec ces services, vous pouvez vous connecter ici sans votre mot de passe.',
  none: 'Aucun n’est relié.',
  connected: '{provider} en tant que {person}, depuis {time}',
  connect: 'Relier {provider}',
  disconnect: 'Délier',
  disconnectedTitle: 'Délié',
  disconnected:
    'Vous ne pouvez plus vous connecter avec ce service. Toutes les connexions et liaisons ont pris fin, celle-ci comprise.',
  connectedTitle: 'Relié',
  connectedNow: 'Vous pouvez maintenant vous connecter avec {provider}, où vous êtes connu en tant que {person}.',
  withoutName: 'quelqu’un dont nous n’apprenons pas l’adresse',
  proofTitle: 'Le relier à votre compte',
  proofKnown: 'Chez {provider}, vous êtes connecté en tant que {person}. Aucun compte d’ici n’y est encore relié.',
  proofNotYou: 'Si ce n’est pas vous, revenez en arrière et déconnectez-vous d’abord là-bas.',
  proofHow:
    'Si vous avez un compte ici, connectez-vous, et les deux seront reliés. Sinon, demandez une invitation à qui s’occupe de ce service.',
  proofConnect: 'Se connecter et relier',
  back: 'Retour à votre compte',
  again: 'Recommencer',
  problems: {
    title: 'Cela n’a pas fonctionné',
    lost: 'Cette connexion a été commencée dans un autre navigateur, était déjà terminée ou a pris trop de temps.',
    removed: 'On ne peut plus se connecter ici avec ce service.',
    cancelled: 'Vous n’avez pas continué chez {provider}, ou l’accès y a été refusé.',
    refused: 'La réponse de {provider} n’était pas correcte. Si cela se répète, dites-le à qui s’occupe de ce service.',
    unreachable: '{provider} ne répond pas pour le moment. Réessayez dans un instant.',
    notFresh: '{provider} ne vous a pas demandé de vous connecter de nouveau, ce qui est nécessaire ici.',
    domain:
      'Avec {provider}, seules les personnes ayant une adresse vérifiée de certains domaines peuvent se connecter ici.',
    notMember: '{provider} est réservé aux membres d’organisations dont ce compte ne fait pas partie.',
    blocked: 'Ce compte ne peut pas se connecter.',
    taken: 'La personne que {provider} connaît est déjà reliée à un compte. Rien n’a été modifié.',
    otherPerson: 'Quelqu’un d’autre est maintenant connecté dans ce navigateur. Rien n’a été relié.',
    last: 'C’est le seul accès à votre compte. Choisissez d’abord un mot de passe ou reliez un autre service.',
  },
}
