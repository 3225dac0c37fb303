/** French. */
import type { FactorWords } from './en.ts'

export const FRENCH_FACTORS: FactorWords = {
  app: {
    title: 'Application d’authentification',
    lead: 'L’application affiche un nouveau code toutes les 30 secondes. Vous en donnerez un à chaque connexion, après votre mot de passe.',
    scan: 'Scannez cette image avec l’application, ou saisissez-y la clé.',
    picture: 'Code QR contenant la clé',
    key: 'Clé',
    openHere: 'Ouvrir dans une application de cet appareil',
    label: 'Code affiché par l’application',
    confirm: 'Activer',
    wrong:
      'Ce code ne convient pas. Vérifiez l’heure de votre appareil et donnez le code que l’application affiche maintenant.',
    expired: 'La clé a expiré. En voici une nouvelle : supprimez l’ancienne dans l’application.',
    isOn: 'Activée : chaque connexion demande un code de l’application.',
    isOff: 'Désactivée',
    remove: 'Retirer l’application',
    removeLead: 'Cela met fin à vos autres connexions.',
    removedTitle: 'L’application est retirée',
    removed: 'Aucune connexion ne demande plus ses codes. Toutes les autres connexions ont pris fin.',
    back: 'Retour à votre compte',
  },
  recovery: {
    title: 'Codes de secours',
    lead: 'Gardez ces codes là où vous les trouverez sans votre appareil. Chacun vous laisse entrer une fois, à la place du second facteur. Ils ne seront plus affichés.',
    left: 'Il reste {left} codes de secours sur {count}.',
    renew: 'Créer de nouveaux codes de secours',
    renewLead: 'Les précédents ne vaudront alors plus rien.',
    kept: 'Je les ai notés',
    lost: 'J’ai perdu mon appareil',
    label: 'Un de vos codes de secours',
    form: 'Seize lettres et chiffres',
    use: 'Utiliser le code de secours',
    wrong: 'Ce code de secours est incorrect ou a déjà servi.',
    usedTitle: 'Vous êtes connecté avec un code de secours',
    used: 'Il a servi. Il en reste {left} sur {count}.',
    usedNext: 'Si vous n’avez plus votre appareil, retirez-le de votre compte et configurez-en un autre.',
    goOn: 'Continuer',
    toAccount: 'Vers votre compte',
  },
  mails: {
    subject: 'Un changement dans votre façon de vous connecter à {host}',
    open: 'Vous pouvez le voir et l’annuler dans votre compte :',
    otherwise:
      'Si ce n’était pas vous, changez-y tout de suite votre mot de passe : cela met fin à toutes les connexions. Prévenez ensuite les responsables de {host}.',
    appAdded: 'Une application d’authentification a été ajoutée à votre compte sur {host}.',
    appRemoved: 'L’application d’authentification a été retirée de votre compte sur {host}.',
    codesRenewed:
      'De nouveaux codes de secours ont été créés pour votre compte sur {host}. Les précédents ne valent plus rien.',
    codeUsed: 'Quelqu’un s’est connecté à votre compte sur {host} avec un code de secours. Il vous en reste {left}.',
  },
}
