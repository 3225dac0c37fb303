/** Decides which passwords people may choose: long enough, and not commonly used (NIST SP 800-63B section 3.1.1.2). */
import { hash } from 'node:crypto'

const CHARACTERS_MIN = 8
const CHARACTERS_MAX = 256

/** A list of known passwords. Throws Error when it cannot be read. */
export type KnownPasswords = { has(sha1: string): Promise<boolean> }
export type PasswordRules = {
  /** The reason to refuse a password; null: it may be chosen. `repeated`: the text of the second field. */
  problem(chosen: {
    readonly password: string
    readonly repeated: string
    readonly email: string | null
  }): Promise<'short' | 'long' | 'breached' | 'different' | null>
}

/** `list`: passwords to refuse besides the built-in ones. */
export function createPasswordRules({ list }: { readonly list: KnownPasswords | null }): PasswordRules {
  return {
    async problem({ password, repeated, email }) {
      if (password.length > CHARACTERS_MAX) return 'long'
      if ([...password].length < CHARACTERS_MIN) return 'short'
      if (password !== repeated) return 'different'
      const folded = password.toLowerCase()
      if (COMMON_PASSWORDS.has(folded) || folded === email?.toLowerCase()) return 'breached'
      // Lists hold passwords as they were typed, which is mostly in composed form (NFC).
      const typed = new Set([password, password.normalize('NFC')])
      for (const text of typed) if (await list?.has(sha1Of(text))) return 'breached'
      return null
    },
  }
}

/** The digest in lists of known passwords. SHA-1 protects nothing here. */
const sha1Of = (text: string): string => hash('sha1', text, 'hex').toUpperCase()

/** Common passwords, in lower case. */
const COMMON_PASSWORDS: ReadonlySet<string> = new Set(
  `
    password password1 password12 password123 password1234 password! passw0rd p@ssw0rd p@ssword pa$$word pa$$w0rd
    passwort passwort1 motdepasse contraseña contrasena parola123 12345678 123456789 1234567890 12345678910
    0123456789 0987654321 987654321 9876543210 87654321 11111111 111111111 1111111111 00000000 000000000 0000000000
    22222222 33333333 44444444 55555555 66666666 77777777 88888888 888888888 99999999 999999999 12121212 123123123
    123321123 12341234 1234512345 11223344 1122334455 112233445566 12344321 11112222 13131313 10203040 147258369
    159357456 1q2w3e4r 1q2w3e4r5t 1q2w3e4r5t6y 1qaz2wsx 1qaz2wsx3edc 1qazxsw2 qazwsxedc qazwsx123 q1w2e3r4
    q1w2e3r4t5 zaq12wsx zaq1zaq1 zxcvbnm1 zxcvbnm123 asdfghjkl asdfghjkl1 asdfasdf asdf1234 asdfgh123 qwertyui
    qwertyuiop qwertyuiop1 qwerty12 qwerty123 qwerty1234 qwerty12345 qwerty123456 qwertz123 qwertzuiop azertyuiop
    azerty123 qweasdzxc qweasd123 qwer1234 qwe123qwe 123qweasd 123qweasdzxc 1234qwer 12345qwert 123456qwerty
    abcd1234 abcdefgh abcdefg1 abcdefghi abc12345 abc123456 abc123abc a1b2c3d4 a1s2d3f4 a12345678 a123456789
    aa123456 aa12345678 123456aa 123456789a 12345678a 1234567q 1234567a q123456789 1a2b3c4d aaaaaaaa aaaaaaaaa
    xxxxxxxx zzzzzzzz iloveyou iloveyou1 iloveyou2 iloveyou! loveyou1 iloveu123 lovelove loveme123 princess
    princess1 sunshine sunshine1 football football1 baseball baseball1 basketball superman superman1 batman123
    spiderman starwars starwars1 pokemon1 pokemon123 michael1 jennifer jordan23 michelle charlie1 daniel123 jessica1
    ashley123 matthew1 nicole123 anthony1 robert123 alexander elizabeth samantha benjamin christian jonathan
    victoria veronica stephanie trustno1 whatever whatever1 computer computer1 internet corvette mercedes maverick
    midnight mountain mustang1 liverpool liverpool1 arsenal1 chelsea1 barcelona juventus realmadrid manchester
    welcome1 welcome12 welcome123 welcome1! welcome2024 welcome2025 welcome2026 letmein1 letmein123 letmein!
    changeme changeme1 changeme123 changeit default1 secret123 topsecret testtest test1234 test12345 testing1
    testing123 guest123 guest1234 login123 admin123 admin1234 admin12345 administrator administrator1 root1234
    rootroot master123 access14 user1234 demo1234 temp1234 temppass p@ssw0rd1 p@ssw0rd123 passpass password01
    password00 password2 password3 password7 password9 password99 password2024 password2025 password2026 summer2024
    summer2025 summer2026 winter2024 winter2025 winter2026 spring2025 spring2026 autumn2025 autumn2026 monday123
    january1 december december1 september november february dragon123 monkey123 shadow123 hunter123 tigger123
    ginger123 cheese123 cookie123 banana123 pepper123 killer123 freedom1 blink182 slipknot metallica nirvana1
    linkedin facebook facebook1 google123 samsung1 samsung123 myspace1 minecraft fuckyou1 fuckyou123 fuckyou!
    asshole1 trustme1 nothing1 hello123 hello1234 hellohello helloworld helloword goodluck godbless jesus123
    jesuschrist blessed1 angel123 babygirl babygirl1 butterfly chocolate beautiful sweetheart snowball crystal1
    diamond1 rainbow1 flower123 purple123 orange123 yellow123 rockstar rockstar1 skateboard playstation xbox360live
    correcthorsebatterystaple dearbook danielle gabriela alejandra estrella bonjour1 doudou123 chouchou marseille
    soleil123 schatz123 hallo123 hallo1234 passwort123 sommer2025 ficken123 berlin123 qwerasdf zxcvasdf poiuytrewq
    lkjhgfdsa mnbvcxz1 0p9o8i7u 741852963 789456123 963852741 456456456 789789789 321321321 147147147 258258258
    369369369 101010101 123454321 1234554321 12345654321 5201314520 woaini1314 woaini520 wang1234 zhang123
`
    .trim()
    .split(/\s+/),
)
