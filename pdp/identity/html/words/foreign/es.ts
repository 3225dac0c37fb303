/** Spanish: signing in with other services. */
import type { Foreign } from './en.ts'

export const SPANISH_FOREIGN: Foreign = {
  signInWith: 'Iniciar sesión con {provider}',
  title: 'Inicio de sesión con otros servicios',
  lead: 'Con estos servicios puede iniciar sesión aquí sin su contraseña.',
  none: 'Ninguno está vinculado.',
  connected: '{provider} como {person}, desde {time}',
  connect: 'Vincular {provider}',
  disconnect: 'Desvincular',
  disconnectedTitle: 'Desvinculado',
  disconnected:
    'Ya no puede iniciar sesión con ese servicio. Todas las sesiones y conexiones han terminado, también esta.',
  connectedTitle: 'Vinculado',
  connectedNow: 'Desde ahora puede iniciar sesión con {provider}, donde se le conoce como {person}.',
  withoutName: 'alguien cuya dirección no sabemos',
  proofTitle: 'Vincularlo con su cuenta',
  proofKnown: 'En {provider} ha iniciado sesión como {person}. Ninguna cuenta de aquí está vinculada todavía.',
  proofNotYou: 'Si no es usted, vuelva atrás y cierre primero la sesión allí.',
  proofHow:
    'Si tiene una cuenta aquí, inicie sesión en ella y las dos quedarán vinculadas. Si no tiene ninguna, pida una invitación a quien se ocupa de este servicio.',
  proofConnect: 'Iniciar sesión y vincular',
  back: 'Volver a su cuenta',
  again: 'Empezar de nuevo',
  problems: {
    title: 'Eso no ha funcionado',
    lost: 'Este inicio de sesión empezó en otro navegador, ya había terminado o tardó demasiado.',
    removed: 'Este servicio ya no sirve para iniciar sesión aquí.',
    cancelled: 'No continuó en {provider}, o allí no se le permitió.',
    refused: 'La respuesta de {provider} no era correcta. Si se repite, dígaselo a quien se ocupa de este servicio.',
    unreachable: '{provider} no responde en este momento. Inténtelo de nuevo enseguida.',
    notFresh: '{provider} no le pidió que iniciara sesión otra vez, y aquí hace falta.',
    domain: 'Con {provider} solo pueden iniciar sesión aquí personas con una dirección verificada de ciertos dominios.',
    notMember: '{provider} es para miembros de organizaciones a las que esta cuenta no pertenece.',
    blocked: 'Esta cuenta no puede iniciar sesión.',
    taken: 'La persona que {provider} conoce ya está vinculada con una cuenta. No se ha cambiado nada.',
    otherPerson: 'Otra persona ha iniciado sesión en este navegador. No se ha vinculado nada.',
    last: 'Es la única entrada a su cuenta. Elija primero una contraseña o vincule otro servicio.',
  },
}
