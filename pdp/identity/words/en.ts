/** English. `{names}` in braces are filled in; every language has the same. */
export const ENGLISH = {
  /** Of the attribute `lang` (BCP 47). */
  lang: 'en',
  common: {
    continue: 'Continue',
    cancel: 'Cancel',
    signIn: 'Sign in',
    signOut: 'Sign out',
    signedInAs: 'You are signed in as {person}.',
    canClose: 'You can close this page.',
    notYou: 'Not you? Use another account',
  },
  signIn: {
    title: 'Sign in',
    toApplication: 'to go on to {application}',
    toAccount: 'to look after your account',
    forgotten: 'Forgotten your password?',
    toSeeRequests: 'to see which applications wait for you',
    again: 'An application asks that you sign in again.',
    withCode: 'An application asks for a code as well.',
    email: 'E-mail address',
    password: 'Password',
    wrong: 'The e-mail address or the password is not right.',
    wrongCode: 'The code is not right, or was used already. Wait for the next one.',
    tooMany: 'There were too many attempts. Try again in a few minutes.',
    busy: 'Too many people are signing in right now. Try again in a moment.',
  },
  code: {
    title: 'Enter your code',
    label: 'Code from your authenticator app',
    form: 'Six digits',
  },
  consent: {
    title: 'Go on to {application}',
    willBeAble: '{application} will be able to:',
    organization: 'Organization: {organization}',
    whichOrganization: 'For which organization?',
  },
  /** What a scope lets an application do; it follows "will be able to". Other scopes are shown by name. */
  scopes: {
    openid: 'know who you are',
    profile: 'see your name',
    email: 'see your e-mail address',
    groups: 'see your roles',
    organizations: 'see the organizations that you belong to',
    offline_access: 'go on doing this while you are away',
  },
  approval: {
    title: 'Requests',
    none: 'No request waits for your answer. Reload this page when an application says that it sent one.',
    mustShow: 'It must show you this:',
    willBeAble: 'It will be able to:',
    notAMember: 'You are not a member of the organization that it asks for.',
    approve: 'Approve',
    refuse: 'Refuse',
    approved: 'You approved the request.',
    denied: 'You refused the request.',
    unmet: 'The request asks for an authenticator app, and you have none. It was refused.',
    gone: 'The request had expired or was answered already.',
  },
  device: {
    title: 'Connect a device',
    label: 'Code on your device',
    asks: 'A device that runs {application} wants to be signed in as you. It shows this code:',
    willBeAble: 'If you agree, it will be able to:',
    organization: 'It asks for the organization {organization}.',
    onlyYours: 'Go on only if you started this yourself and see the code on your device.',
    mine: 'This is my device',
    wrong: 'There is no such code. Compare it with the one that your device shows.',
    expired: 'This code has expired. Start again on your device.',
    used: 'This code was used already. Start again on your device.',
    stopped: 'The sign-in on your device was stopped.',
    tooMany: 'There were too many wrong codes. Try again in a minute.',
    failed: 'The sign-in on your device did not work. Start again there.',
    connected: 'Your device is connected',
    goOn: 'You can close this page and continue on the device.',
  },
  signOut: {
    title: 'Sign out',
    question: 'Do you want to sign out everywhere in this browser?',
    stay: 'Stay signed in',
    nobody: 'Nobody is signed in in this browser.',
    done: 'You are signed out',
    changeTitle: 'Change the person',
    change: 'Somebody else was signed in in this browser. That sign-in ends first.',
  },
  formPost: {
    title: 'Back to the application',
    text: 'You are done here. If nothing happens, go on by the button.',
  },
  landing: {
    title: 'Sign-in service',
    text: 'Applications send you here to sign in. To begin, open the application that you want to use.',
  },
  links: {
    terms: 'Terms',
    privacy: 'Privacy',
    support: 'Help',
  },
  errors: {
    missing: {
      title: 'There is nothing here',
      text: 'Compare the address with the one that you were given, or go back.',
    },
    expired: {
      title: 'This sign-in has expired',
      text: 'It took too long, or was finished already. Go back to the application and start again.',
    },
    foreignForm: {
      title: 'This form was sent from elsewhere',
      text: 'Nothing was changed. Open the page again, and send its form from there.',
    },
    oldForm: {
      title: 'This form has expired',
      text: 'Nothing was changed. Open the page again, and send its form from there.',
    },
    largeForm: {
      title: 'The form is too large',
      text: 'Nothing was changed. Go back and write less.',
    },
    organization: {
      title: 'Choose one of the organizations',
      text: 'Go back and choose one that is offered.',
    },
    tooMany: {
      title: 'Too many requests',
      text: 'Too many came from your network. Try again in a minute.',
    },
    unavailable: {
      title: 'The service cannot answer right now',
      text: 'Try again in a moment.',
    },
    failed: {
      title: 'Something went wrong here',
      text: 'It was not your mistake. Go back to the application and try again. If it goes on, tell your support what stands below.',
    },
    refused: {
      title: 'You were not let in',
      text: 'Go back to the application. If you think that you should be let in, ask who looks after it.',
    },
    application: {
      title: 'The application made a mistake',
      text: 'It asked for a sign-in that is not possible. You can do nothing about it here: tell who looks after the application what stands below.',
    },
    /** What to name when asking for help. */
    error: 'Error',
    request: 'Request',
    reason: 'Reason',
  },
}

export type Words = typeof ENGLISH
