/** Environment variables of the commands that connect to a running PDP. */

export const URL_DEFAULT = 'http://127.0.0.1:8080'
export const CLIENT_SETTINGS: readonly (readonly [name: string, meaning: string])[] = [
  ['PORTCULLIS_URL', `URL of the PDP (${URL_DEFAULT})`],
  ['PORTCULLIS_TOKEN', 'an access token, also as …_FILE; instead of the client below'],
  ['PORTCULLIS_CLIENT_ID', 'id of a client that has the scope that the command needs (admin)'],
  [
    'PORTCULLIS_CLIENT_SECRET',
    'secret of that client, also as …_FILE; on the machine of the PDP, the generated secret of admin is found',
  ],
]
