/** Spanish: how people come in by an invitation. */
import type { Joining } from './en.ts'

export const SPANISH_JOINING: Joining = {
  title: 'Tiene una invitación',
  lead: '{inviter} invita a {email} a esta organización:',
  organization: 'A la organización',
  tier: 'Como',
  roles: 'Con las funciones',
  until: 'Válida hasta',
  somebody: 'Una persona que se ocupa de ella',
  tiers: {
    owner: 'propietario',
    admin: 'administrador',
    developer: 'desarrollador',
    member: 'miembro',
    viewer: 'lector',
  },
  accept: 'Aceptar',
  decline: 'Rechazar',
  newHere: 'Todavía no hay ninguna cuenta con esta dirección. Elija una contraseña y se creará.',
  name: 'Su nombre (si quiere)',
  create: 'Crear la cuenta y aceptar',
  replaces: 'Ha iniciado sesión como {person}. Esa sesión terminará cuando cree la cuenta.',
  notYou: 'La invitación es para otra cuenta: ha iniciado sesión como {person}.',
  signInAs: 'Iniciar sesión con la dirección invitada',
  doneTitle: 'Ya forma parte',
  done: 'Es miembro de {organization}.',
  declinedTitle: 'Ha rechazado',
  declined: 'La invitación a {organization} ya no es válida.',
  account: 'A su cuenta',
  failed: {
    title: 'Esta invitación ya no es válida',
    gone: 'Ya se usó, fue retirada o sustituida por otra más reciente, ha caducado o no está completa.',
    unbacked: 'Quien le invitó ya no puede hacerlo. No se ha cambiado nada. Pida otra invitación.',
    changed: 'Una función que da ya no existe. No se ha cambiado nada. Pida otra invitación.',
    member: 'Ya es miembro de esta organización. No se ha cambiado nada.',
    suspended:
      'La organización ha suspendido su pertenencia. No se ha cambiado nada. Pregunte a quien se ocupa de la organización.',
    taken: 'Entretanto se ha creado una cuenta con esta dirección. Abra otra vez el enlace del correo e inicie sesión.',
  },
  mail: {
    subject: 'Invitación a {organization} en {host}',
    asked: 'Tiene una invitación para unirse a {organization} en {host}.',
    open: 'Vea quién le invita, y acepte o rechace, aquí:',
    otherwise: 'El enlace es válido durante siete días y una sola vez. Si no sabe de qué se trata, no haga nada.',
  },
}
