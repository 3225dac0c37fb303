import { expect, test } from 'vitest'
import { openKubeApi } from '../../../../sidecar/injector/certificate/kube-api.ts'

test('a token file that is not there is told in words, with the option that names another', async () => {
  const api = openKubeApi({ server: 'https://127.0.0.1:1', tokenFile: '/nowhere/token' })
  await expect(api.get('/api')).rejects.toThrow(
    'The token of the ServiceAccount: /nowhere/token does not exist. Name the file by --token-file',
  )
})
