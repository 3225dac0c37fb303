/** German. */
import type { FactorWords } from './en.ts'

export const GERMAN_FACTORS: FactorWords = {
  app: {
    title: 'Authenticator-App',
    lead: 'Die App zeigt alle 30 Sekunden einen neuen Code. Ab dann geben Sie bei jeder Anmeldung einen davon ein, nach dem Passwort.',
    scan: 'Scannen Sie dieses Bild mit der App, oder tippen Sie den Schlüssel ein.',
    picture: 'QR-Code mit dem Schlüssel',
    key: 'Schlüssel',
    openHere: 'In einer App auf diesem Gerät öffnen',
    label: 'Code, den die App zeigt',
    confirm: 'Einschalten',
    wrong:
      'Dieser Code passt nicht. Prüfen Sie die Uhrzeit Ihres Geräts, und geben Sie den Code ein, den die App gerade zeigt.',
    expired: 'Der Schlüssel ist abgelaufen. Hier ist ein neuer: Löschen Sie den alten in der App.',
    isOn: 'Ein: Jede Anmeldung verlangt einen Code der App.',
    isOff: 'Aus',
    remove: 'App entfernen',
    removeLead: 'Damit enden Ihre anderen Anmeldungen und Verbindungen.',
    removedTitle: 'Die App ist entfernt',
    removed: 'Keine Anmeldung verlangt mehr ihre Codes. Alle anderen Anmeldungen und Verbindungen sind beendet.',
    back: 'Zurück zu Ihrem Konto',
  },
  recovery: {
    title: 'Wiederherstellungscodes',
    lead: 'Bewahren Sie diese Codes dort auf, wo Sie sie ohne Ihr Gerät finden. Jeder lässt Sie einmal hinein, anstelle des zweiten Faktors. Sie werden nicht noch einmal gezeigt.',
    left: '{left} von {count} Wiederherstellungscodes sind übrig.',
    renew: 'Neue Wiederherstellungscodes erzeugen',
    renewLead: 'Die bisherigen gelten dann nicht mehr.',
    kept: 'Ich habe sie aufbewahrt',
    lost: 'Ich habe mein Gerät verloren',
    label: 'Einer Ihrer Wiederherstellungscodes',
    form: 'Sechzehn Buchstaben und Ziffern',
    use: 'Wiederherstellungscode verwenden',
    wrong: 'Dieser Wiederherstellungscode stimmt nicht oder wurde schon verwendet.',
    usedTitle: 'Sie sind mit einem Wiederherstellungscode angemeldet',
    used: 'Er ist verbraucht. {left} von {count} sind übrig.',
    usedNext: 'Wenn Sie Ihr Gerät nicht mehr haben, entfernen Sie es aus Ihrem Konto und richten Sie ein anderes ein.',
    goOn: 'Weiter',
    toAccount: 'Zu Ihrem Konto',
  },
  mails: {
    subject: 'Änderung daran, wie Sie sich bei {host} anmelden',
    open: 'Ansehen und rückgängig machen können Sie es in Ihrem Konto:',
    otherwise:
      'Wenn Sie das nicht waren, ändern Sie dort sofort Ihr Passwort: Damit enden alle Anmeldungen. Sagen Sie es dann denen, die {host} betreuen.',
    appAdded: 'Ihrem Konto bei {host} wurde eine Authenticator-App hinzugefügt.',
    appRemoved: 'Die Authenticator-App wurde aus Ihrem Konto bei {host} entfernt.',
    codesRenewed:
      'Für Ihr Konto bei {host} wurden neue Wiederherstellungscodes erzeugt. Die bisherigen gelten nicht mehr.',
    codeUsed:
      'Jemand hat sich mit einem Wiederherstellungscode bei Ihrem Konto bei {host} angemeldet. Sie haben noch {left}.',
  },
}
