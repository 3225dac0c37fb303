/** German: signing in with other services. */
import type { Foreign } from './en.ts'

export const GERMAN_FOREIGN: Foreign = {
  signInWith: 'Mit {provider} anmelden',
  title: 'Anmeldung mit anderen Diensten',
  lead: 'Mit diesen Diensten können Sie sich hier ohne Ihr Passwort anmelden.',
  none: 'Keiner ist verbunden.',
  connected: '{provider} als {person}, seit {time}',
  connect: '{provider} verbinden',
  disconnect: 'Trennen',
  disconnectedTitle: 'Getrennt',
  disconnected:
    'Sie können sich damit nicht mehr anmelden. Alle Anmeldungen und Verbindungen sind beendet, auch diese.',
  connectedTitle: 'Verbunden',
  connectedNow: 'Ab jetzt können Sie sich mit {provider} anmelden, wo Sie als {person} bekannt sind.',
  withoutName: 'jemand, dessen Adresse wir nicht erfahren',
  proofTitle: 'Mit Ihrem Konto verbinden',
  proofKnown: 'Bei {provider} sind Sie als {person} angemeldet. Damit ist hier noch kein Konto verbunden.',
  proofNotYou: 'Wenn Sie das nicht sind, gehen Sie zurück und melden Sie sich zuerst dort ab.',
  proofHow:
    'Wenn Sie hier ein Konto haben, melden Sie sich damit an; ab dann sind beide verbunden. Wenn Sie keines haben, bitten Sie die Person, die diesen Dienst betreut, um eine Einladung.',
  proofConnect: 'Anmelden und verbinden',
  back: 'Zurück zu Ihrem Konto',
  again: 'Von vorn beginnen',
  problems: {
    title: 'Das hat nicht geklappt',
    lost: 'Diese Anmeldung wurde in einem anderen Browser begonnen, war schon beendet oder hat zu lange gedauert.',
    removed: 'Mit diesem Dienst kann man sich hier nicht mehr anmelden.',
    cancelled: 'Sie sind bei {provider} nicht weitergegangen oder wurden dort abgelehnt.',
    refused:
      'Die Antwort von {provider} war nicht richtig. Wenn es wieder geschieht, sagen Sie es der Person, die diesen Dienst betreut.',
    unreachable: '{provider} antwortet gerade nicht. Versuchen Sie es gleich noch einmal.',
    notFresh: '{provider} hat Sie nicht noch einmal angemeldet, was hierfür nötig ist.',
    domain: 'Mit {provider} können sich hier nur Personen mit einer bestätigten Adresse bestimmter Domains anmelden.',
    notMember: '{provider} ist für Mitglieder von Organisationen, zu denen dieses Konto nicht gehört.',
    blocked: 'Dieses Konto darf sich nicht anmelden.',
    taken: 'Die Person, als die {provider} Sie kennt, ist schon mit einem Konto verbunden. Nichts wurde geändert.',
    otherPerson: 'In diesem Browser ist inzwischen jemand anderes angemeldet. Nichts wurde verbunden.',
    last: 'Das ist der einzige Weg in Ihr Konto. Wählen Sie zuerst ein Passwort oder verbinden Sie einen anderen Dienst.',
  },
}
