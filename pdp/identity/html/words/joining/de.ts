/** German: how people come in by an invitation. */
import type { Joining } from './en.ts'

export const GERMAN_JOINING: Joining = {
  title: 'Sie sind eingeladen',
  lead: '{inviter} lädt {email} in diese Organisation ein:',
  organization: 'In die Organisation',
  tier: 'Als',
  roles: 'Mit den Rollen',
  until: 'Gültig bis',
  somebody: 'Jemand, der sie betreut,',
  tiers: { owner: 'Inhaber', admin: 'Verwalter', developer: 'Entwickler', member: 'Mitglied', viewer: 'Leser' },
  accept: 'Annehmen',
  decline: 'Ablehnen',
  newHere: 'Mit dieser Adresse gibt es noch kein Konto. Wählen Sie ein Passwort, dann wird es angelegt.',
  name: 'Ihr Name (wenn Sie möchten)',
  create: 'Konto anlegen und annehmen',
  replaces: 'Sie sind als {person} angemeldet. Diese Anmeldung endet, wenn Sie das Konto anlegen.',
  notYou: 'Die Einladung ist für ein anderes Konto: Sie sind als {person} angemeldet.',
  signInAs: 'Mit der eingeladenen Adresse anmelden',
  doneTitle: 'Sie gehören jetzt dazu',
  done: 'Sie sind Mitglied von {organization}.',
  declinedTitle: 'Sie haben abgelehnt',
  declined: 'Die Einladung zu {organization} gilt nicht mehr.',
  account: 'Zu Ihrem Konto',
  failed: {
    title: 'Diese Einladung gilt nicht mehr',
    gone: 'Sie wurde schon verwendet, zurückgezogen oder durch eine neuere ersetzt, ist abgelaufen oder nicht vollständig.',
    unbacked:
      'Wer Sie eingeladen hat, darf das nicht mehr. Nichts wurde geändert. Bitten Sie um eine andere Einladung.',
    changed:
      'Eine Rolle, die sie gibt, gibt es nicht mehr. Nichts wurde geändert. Bitten Sie um eine andere Einladung.',
    member: 'Sie sind schon Mitglied dieser Organisation. Nichts wurde geändert.',
    suspended:
      'Die Organisation hat Ihre Mitgliedschaft ausgesetzt. Nichts wurde geändert. Wenden Sie sich an die Verwaltung der Organisation.',
    taken:
      'Inzwischen gibt es ein Konto mit dieser Adresse. Öffnen Sie den Link in der E-Mail noch einmal und melden Sie sich an.',
  },
  mail: {
    subject: 'Einladung zu {organization} bei {host}',
    asked: 'Sie sind eingeladen, bei {host} zu {organization} zu kommen.',
    open: 'Sehen Sie hier, wer Sie einlädt, und nehmen Sie an oder lehnen Sie ab:',
    otherwise:
      'Der Link gilt sieben Tage und nur einmal. Wenn Sie nicht wissen, worum es geht, brauchen Sie nichts zu tun.',
  },
}
