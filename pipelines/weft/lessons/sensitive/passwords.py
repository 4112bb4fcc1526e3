"""Passwords that a sentence tells or a line assigns, by the words around them, in several languages."""

from __future__ import annotations

import re
from collections.abc import Iterator

_NAMES = (
    r"(?:pass(?:wor[dt]|phrase|code)|pw|pwd|passwd|mdp|passwort|kennwort|mot de passe|contraseña|senha|wachtwoord|"
    r"hasło to|hasło|lösenordet|lösenord|adgangskode|salasana|parola|şifre|пароль|密码|密碼|口令|パスワード|비밀번호)"
)
_FURTHER_NAMES = (
    r"(?:(?:api|access|secret|auth)[ _-]?(?:key|token)|(?:t?otp|[2m]fa|recovery|backup|activation|licen[cs]e"
    r"|product|invite|wi-?fi|wlan|wpa2?|vpn|network)[ _-]?(?:seed|secret|key|code)"
    r"|secret|token|credentials?|auth|clave|clé|schlüssel|chiave)"
)
_IS = (
    r"(?:\s+(?:is|was|equals|remains|reads|has been|will be|becomes|wird|bleibt|(?:is |was |are )?(?:set|defaults"
    r"|changed|reset) to|lautet|heißt|heisst|ist|war|est|s'appelle|se llama|si chiama|es|é|è|är|er|jest|jako)\b"
    r"|['’]s\b|\s*(?:是|为|為|は|는|은|：|:|=|—|->))"
)
_OPEN = r"['\"`„“»«]"
_CLOSE = r"['\"`”“»«]"
_VALUE = r"[^\s'\"`<>{}$„“”»«,;]"
# What a clause may go on with behind a value.
_END = (
    r"(?=\s*(?:[.!,;()|\]}\n\"']|$)|\s+(?:on|for|in|at|and|but|or|to|as|if|when|until|there|everywhere|before"
    r"|after|since|now|again|because|so|which|instead|auf|für|und|an|ein|im|"
    r"bei|sur|pour|et|dans|y|en|para|e|per|su|i|och|です|입니다)\b)"
)
# What is said of passwords, and is none.
_DESCRIPTIONS = re.compile(
    r"(?:[^\W\d]+-)*(?:\w+(?:ed|ing|able|ible|less|ful|ory|ary|ous|ive|ically|ly|bar|lich|isch|ées?|és?|[ao]ire|ante?|"
    r"ad[oa]s?|id[oa]s?|ari[oa]s?|ori[oa]s?|\w{3}ato|\w{3}ata|\w{3}uto|\w{3}uta)"
    r"|(?-i:(?:ab|an|auf|aus|ein|vor|zu|um|nach|hin|weg|mit)?ge[a-zäöüß]+(?:t|en)|(?:ver|be|ent|er"
    r"|zer)[a-zäöüß]+(?:t|en)"
    r"|[a-zäöüß]{2,}ert)"
    r"|wrong|right|correct|incorrect|valid|invalid|missing|empty|blank|weak|strong|short|shorter|long|longer|optional|"
    r"required|needed|unique|public|private|personal|random|plain|plaintext|fine|safe|unsafe|secure|insecure|stale"
    r"|old|"
    r"new|newer|same|different|default|sensitive|secret|hidden|kept|sent|set|reset|read|put|held|left|lost|shown|"
    r"given|taken|made|found|built|known|written|broken|chosen|forgotten|stolen|bound|split|part|gone|good|bad|enough|"
    r"only|never|always|just|also|still|what|that|this|there|here|from|with|without|then|than|when|where|not|now|case|"
    r"up|out|too|again|twice|once|below|above|both|either|empty|string|str|bytes|text|int|none|null|nil|true|false"
    r"|any|"
    r"undefined|void|mandatory|opaque|constant|dynamic|static|temporary|global|local|dead|free|ready|easy|hard|"
    r"it|its|their|your|our|his|her|my|the|an?|to|of|on|in|at|by|for|as|and|or|if|which|who|whose|is|be|no|yes|per"
    r"|via|over|under|"
    r"must|may|can|could|will|shall|should|would|has|have|had|does|did|do|"
    r"muss|müssen|soll|darf|kann|wird|werden|wurde|hat|"
    r"doit|peut|sera|devrait|debe|puede|será|tiene|deve|può|viene|"
    r"falsch|richtig|leer|nötig|lang|kurz|stark|schwach|sicher|unsicher|gleich|neu|alt|hier|nicht|nie|immer|das|die|"
    r"der|ein|eine|zu|im|in|nur|auch|noch|Pflicht|geheim(?:e[rns]?)?|"
    r"faux|juste|vide|secret|court|longue?|fort|faible|le|la|les|un|une|dans|ici|trop|pas|plus|jamais|toujours|"
    r"falsa|incorrecta|correcta|larga|corta|fuerte|débil|vacía|el|una?|aquí|muy|siempre|nunca|"
    r"sbagliata|errata|corta|lunga|debole|forte|nel|nella|sempre|mai|qui|"
    r"(?:base64|sha\w?[\d-]*|md5|argon2\w*|bcrypt|scrypt|pbkdf2|oauth2?|utf-?8|ed25519|rsa\d*|aes\d*|[hre]s\d{3}|v\d+|"
    r"jwts?|uuidv?\d?|x509|http2?)(?:[-_]\w+)*)|\d{1,4}(?:-[^\W\d_]+)?",
    re.IGNORECASE,
)
# What stands behind the word "password" as one thing with it.
_OF_PASSWORDS = re.compile(
    r"(?:auth\w*|fields?|hash\w*|resets?|polic\w+|manager\w*|protect\w*|files?|prompts?|chang\w+|rotat\w+|logins?|"
    r"strength|lengths?|checks?|rules?|expir\w+|confirm\w*|inputs?|forms?|stor\w+|generat\w+|valid\w+|recover\w*|"
    r"grants?|vaults?|encrypt\w*|columns?|lists?|leaks?|attempts?|requests?|pages?|links?|tests?|screen|box|dialog|"
    r"columns?|entry|entries|parameters?|arguments?|options?|flags?|variables?|settings?|values?|strings?|callbacks?|"
    r"complexity|requirements?|reuse|history|histories|safe|safes|database|salts?|tables?|providers?|flows?"
    r"|cop(?:y|ies)|"
    r"header|headers|token|tokens|endpoint|endpoints|secret|secrets|"
    r"rather|instead|together|itself|itselves|alone|first|last|straight|directly)",
    re.IGNORECASE,
)
# Stands where a secret would, and is none.
PLACEHOLDER = re.compile(
    r"['\"`]?(?:[x*.•_-]{3,}|your[-_ ]?\w[\w-]*|my[-_]\w[\w-]*[-_](?:key|token|secret|password)|change[-_]?me[a-z_-]*"
    r"|example\w*|placeholder|"
    r"dummy|redacted|todo|tbd|fixme|foo|bar|baz|none|null|nil|undefined|true|false|str|string|bytes|text|int|bool|"
    r"any|optional|required|hidden|masked|empty|password|passwort|passwd|pass|secret|token|key|value|"
    r"(?:insert|enter|put|some|the|a|an|fake|test|sample|new|old)[-_]\w[\w-]*|env|environment|vault|prompt|stdin|"
    r"\w*(?:[-_.]|\b)(?:args|argv|settings|config|options|opts|self|os|env|environ|process|secrets|request|req"
    r"|form|data|"
    r"body|params|vars|var|local|module|ctx|props|user"
    r"|this)[.\[]\S*|\w[\w.]*\(.*|\d{1,4}|%\w+%|@\w+|[a-z_]+(?:\.[A-Za-z_]+)+|/\S*|\./\S*|~/\S*)['\"`]?[.,;:!)]*",
    re.IGNORECASE,
)
_NAME = (
    r"(?<![\w/.-])[\w.-]{0,40}?(?:pass(?:wor[dt]|wd|phrase|code)?|pwd?|secrets?|token|api[_-]?key|credentials?|auth|"
    r"(?:access|signing|encryption|private|secret|auth|master|account|session|licen[cs]e|service|admin)[_-]?key)"
    r"(?P<rest>(?:[_.-]\w{1,20}){0,4})['\"]?"
)
# A name that ends so tells something about a secret.
_ABOUT = re.compile(
    r".*(?:header|name|file|path|dir|url|uri|length|len|size|count|ttl|timeout|age|expiry|expires?|expires?_?in|days|"
    r"hours|minutes|seconds|rounds|attempts|limit|capacity|field|column|prefix|suffix|type|kind|policy|format"
    r"|algorithm|"
    r"alg|hasher|hashers|validators?|backend|provider|class|method|mode|endpoint|manager|store|ref|arn|version"
    r"|enabled|"
    r"required|scheme|env|var|rotation|interval|min|max|stdin|command|prompt|label|title)[_-]?(?:s|ms)?\d*",
    re.IGNORECASE,
)
_ASSIGNED = re.compile(
    rf"{_NAME}\s*(?P<sign>:=|=>|=(?!=)|:(?![:/]))\s*(?P<value>['\"`][^'\"`\n]{{1,200}}['\"`]|[^\s,;&'\"`]{{1,200}})",
    re.IGNORECASE,
)
_NAMED_VALUE = re.compile(
    rf"(?:\b|_|(?<=[\w-])){_NAMES}(?P<of>(?:,?\s(?!is\b|was\b|ist\b|est\b|es\b)[\w.-]+){{0,6}}?),?{_IS}\s*"
    rf"(?:(?:now|still|actually|apparently|probably|also|übrigens|weiterhin|aktuell|derzeit|momentan|jetzt|nun"
    rf"|maintenant|ahora|adesso|currently|simply|just|always|immer|toujours|siempre|:)\s+)*"
    rf"(?:{_OPEN}(?P<quoted>[^'\"`”“»«\n]{{3,200}}){_CLOSE}|(?P<value>{_VALUE}{{3,200}}))",
    re.IGNORECASE,
)
_NAMED_SECRET = re.compile(
    rf"\b{_FURTHER_NAMES}(?P<of>\s(?:for|of|on|in|at|to|für|pour|para|de|del|du"
    rf"|vom)(?:\s[\w.-]+){{1,5}}?)?{_IS}\s*(?:now\s+)?"
    rf"(?:{_OPEN}(?P<quoted>[^'\"`”“»«\s]{{4,200}}){_CLOSE}|(?P<value>{_VALUE}{{4,200}}))",
    re.IGNORECASE,
)
_AND = r"(?:and|und|et|y|e|en|&|plus)"
_SHORT_NAME = re.compile(rf"(?<![\w-])pass:\s*(?P<value>{_VALUE}{{4,200}})", re.IGNORECASE)
_WITH = r"(?:with|using|use|enter|type|try|give|pass|mit|verwende|nimm|avec|utilise|con|usa|com|met)"
_THE = r"(?:(?:the|this|its|dem|das|le|la|el|il|a|het)\s+)?"
_BESIDE = re.compile(
    rf"\b{_WITH}\s+{_THE}{_NAMES}\s+(?P<value>{_VALUE}{{4,200}}?)[.!]?{_END}"
    rf"|\b{_NAMES}\s+{_OPEN}(?P<quoted>[^'\"`”“»«\n]{{3,200}}){_CLOSE}",
    re.IGNORECASE,
)
# "the password expires" is a sentence of its own
_AND_BESIDE = re.compile(
    rf"(?:\b{_AND}\s+{_THE}|[,/;]\s+{_THE}|\b(?:the|das|dem|le|la|el"
    rf"|il)\s+){_NAMES}\s+(?P<value>(?-i:(?![a-z]+s\b)){_VALUE}{{4,200}}?)[.!]?{_END}",
    re.IGNORECASE,
)
_GIVEN = re.compile(
    rf"\b{_NAMES}\s+(?P<value>{_VALUE}{{4,200}})\s+(?:eingeben|verwenden|nehmen|benutzen|eintippen|nutzen|invoeren|"
    rf"anmelden|einloggen|must|works|opens|is|was|still)\b|\b{_NAMES}\s?\((?P<other>[^\s()<>$]{{4,200}})\)"
    rf"|\b(?:ENV|ARG)\s+\w*(?:PASS|SECRET|TOKEN)\w*\s+(?P<third>{_VALUE}{{4,200}})$"
    rf"|\bset\s+\w*(?:PASS|SECRET|TOKEN|API_?KEY)\w*\s+to\s+(?P<fourth>{_VALUE}{{4,200}}?){_END}"
    rf"|\b(?:put|write|paste)\s+(?P<fifth>{_VALUE}{{4,200}})\s+in(?:to)?\s+(?:the\s+)?\w*(?:PASS|SECRET|TOKEN"
    rf"|API_?KEY)",
    re.IGNORECASE,
)
_BESIDE_STRONG = re.compile(
    rf"\b(?:{_NAMES}|clave|clé|schlüssel|chiave|token|(?:api|access)[ _-]?key)\s+['\"`]?"
    rf"(?P<value>(?=\S*\d)(?=\S*[^\W\d_]){_VALUE}{{6,200}})",
    re.IGNORECASE,
)
# "hunter2 as its password"
_AS = re.compile(
    rf"\b(?:use|uses|enter|type|set|takes?|wants|try|expects?|needs?|accepts?|give|nimm|verwende|utilise|usa|with|mit|"
    rf"avec|con)\s+(?:{_OPEN}(?P<quoted>[^'\"`”“»«\n]{{3,200}}){_CLOSE}|(?P<value>{_VALUE}{{4,200}}))\s+"
    rf"(?:as|als|comme|como|come|for)\s+(?:(?:the|its|your|a|an|das|le"
    rf"|la)\s+)?(?:\w+\s)?{_NAMES}(?!\s+(?:{_OF_PASSWORDS.pattern})\b)",
    re.IGNORECASE,
)
_ACCOUNT = (
    r"(?:log(?:ged)?[ -]?(?:in|on|ins?)|sign(?:ed)?[ -]?in|logins?|users?|username|account|credentials?|creds|"
    r"authenticate|connecte[sz]?|connexion|identifiants?|melde|anmelden|einloggen|zugang(?:sdaten)?|benutzer|entra|"
    r"accede|accedi|inicia|usuario|utente|credenciales|credenziali|inloggen|basic[ -]auth|http[ -]auth)"
)
_SIGNED_IN = re.compile(
    rf"\b(?:log|sign|get)(?:ged|ged)?[ -]?in\s+(?:with|as"
    rf"|using)\s+\S+\s+and\s+(?P<value>(?=\S*\d)(?=\S*[A-Za-z]){_VALUE}{{5,200}})",
    re.IGNORECASE,
)
_PAIRED = re.compile(
    rf"\b{_ACCOUNT}\b(?:[^.\n]{{0,60}}?(?P<intro>\b(?:as|als|en tant que|avec|como|con|with|mit|use|using|enter|try"
    rf"|are|is|sind|ist|"
    rf"sont|son)\b|[:(]|{_ACCOUNT}"
    rf"|/pass(?:word)?))?\s*['\"`]?[\w][\w.@+-]*['\"`]?\s?(?P<sign>[/:|])\s?['\"`]?(?P<value>{_VALUE}{{3,200}})",
    re.IGNORECASE,
)
_USER_AND = re.compile(
    rf"\b(?:user(?:name)?|login|account|benutzer(?:name)?|utilisateur|identifiant|usuario|utente)['\"]?\s*(?:[:=]"
    rf"|is|ist|est|es)\s*\S+?[,;]?\s+"
    rf"(?:(?:and|und|et|y|the|/|\|)\s+)*(?:{_NAMES}|pass)['\"]?\s*(?:[:=]\s*)?['\"]?(?P<value>{_VALUE}{{2,200}})",
    re.IGNORECASE,
)
# "type hunter when it asks for the password", "answer the password prompt with hunter"
_ASKED = re.compile(
    rf"\b(?:type|enter|answer|reply|give|say|put|tippe|tape|escribe)\s+(?:with\s+)?(?P<value>{_VALUE}{{4,200}})\s+"
    rf"(?:when|if|once|where|at|for|as soon as|wenn|quand|cuando)\b[^.\n]{{0,40}}?\b{_NAMES}\b"
    rf"|\b{_NAMES}\s+(?:prompt|question|dialog|field|box|request)\s+(?:with"
    rf"|by typing)\s+(?P<other>{_VALUE}{{4,200}})",
    re.IGNORECASE,
)
_ELEMENT = re.compile(rf"<(?:\w+[.-])*(?:{_NAMES}|secret|token|api-?key)>(?P<value>[^<>$\s]{{3,}})</", re.IGNORECASE)
# What a key of a keyboard is called, and other answers that are no password.
_KEYSTROKES = re.compile(r"enter|return|tab|escape|nothing|ctrl\S*|your\w*|anything|control\S*", re.IGNORECASE)
_PIN = re.compile(
    r"\bunlock\b[^.\n]{0,30}\bwith \d{4}|\b(?:PIN|PUK|TAN|CVV|CVC|passcode|(?:unlock|access|door|gate|security|alarm|"
    r"vault|safe|entry|verification|backup|recovery|"
    r"pin|lock|zugangs?|tür)[ -]?code|code (?:d'accès|secret)|código|codice)\b(?:\s(?!is\b)[\w-]+){0,6}?\s*(?:is"
    r"|was|lautet|ist|est|es|=|:)?\s*(?<!\w)(?:\d{3,4}|\d\d(?=[ -]\d\d))(?:[ -]?\d{2,4})*\b(?!-| ?\w*(?:digit|char))",
    re.IGNORECASE,
)
_PHRASE = re.compile(
    r"\b(?:seed|recovery|mnemonic|backup)\s(?:phrase|words?)\W+(?:is\W+)?(?:[a-z]+\s+){11,}[a-z]+", re.IGNORECASE
)
# Several words behind "is", as people choose them: "the passphrase is correct horse battery staple".
_WORDS = re.compile(
    rf"\b{_NAMES}(?:\s(?:for|of|on|in|at|to)(?:\s[\w.-]+){{1,4}}?)?\s+is\s+"
    r"(?P<value>(?:[a-z]{3,} ){3,7}[a-z]{3,})[.!]?\s*$",
    re.IGNORECASE | re.MULTILINE,
)
_OF_SENTENCES = re.compile(
    r"\w+(?:ed|ing|ly)|the|this|that|than|not|and|but|for|from|with|when|where|every|each|too|until|after|before|only|"
    r"what|who|which|kept|set|sent|read|stored|one|two|per|has|have|must|may|can|will|never|always|your|our|its|same",
    re.IGNORECASE,
)
# What programs take behind -p, where they take a password there.
_PROGRAMS = r"(?:mysql\w*|mariadb\w*|sshpass|zip|unzip|7z)"
_MIXED = rf"(?=\S*\d)(?=\S*[^\W\d_]){_VALUE}{{6,200}}"
_BEHIND_P = re.compile(
    rf"\b{_PROGRAMS}\b[^.;|&\n]*\s-p ?{_MIXED}|(?<!\S)-p ?{_MIXED} (?:to|for|with) (?:the )?{_PROGRAMS}\b"
)
# Names of passwords that people choose, of several words maybe.
_OF_PEOPLE = re.compile(r"pass|pwd?\b|kennwort", re.IGNORECASE)
# A variable, an attribute, or what code goes on with.
_EXPRESSION = re.compile(
    r"[a-z]\w*(?:\.\w+)+[.,)]*|[a-zA-Z]+(?:_[a-zA-Z]+)+[.,)]*|\w*(?:token|secret|password|key|pw)s?[.,)]*|await"
    r"|new|yield",
    re.IGNORECASE,
)
_OPENS_TEMPLATE = "<{$%[("
_STRONG = re.compile(r"(?=.*\d)(?=.*[^\W\d_]).{5,}|.*[!#$%^&*?+@].*|(?=.*\d).*[_.-].*\d.*", re.DOTALL)
_LETTERS = re.compile(r"(?![A-Z]{2,5}$)[A-Za-zÀ-ž]+(?:-[A-Za-zÀ-ž]+)*")


def states_password(text: str) -> bool:
    """Whether a text tells a password, or another secret by its name.

    Examples:
        >>> [states_password(f"The password is {each}.") for each in ("pineapple", "hunter2", "required", "$PASSWORD")]
        [True, True, False, False]
        >>> states_password("Das Passwort muss lang sein"), states_password("Log in as ada / lovelace12")
        (False, True)
    """
    return (
        _PIN.search(text) is not None
        or _PHRASE.search(text) is not None
        or any(map(_assigns, _ASSIGNED.finditer(text)))
        or any(_is_stated(match) for match in _named(text))
        or any(map(_is_paired, _PAIRED.finditer(text)))
        or any(
            not PLACEHOLDER.fullmatch(match["value"])
            for match in (*_USER_AND.finditer(text), *_ELEMENT.finditer(text), *_SIGNED_IN.finditer(text))
        )
        or any(map(_is_answer, _ASKED.finditer(text)))
        or any(not any(map(_OF_SENTENCES.fullmatch, match["value"].split())) for match in _WORDS.finditer(text))
        or _BEHIND_P.search(text) is not None
    )


def _assigns(match: re.Match[str]) -> bool:
    value = match["value"].strip("'\"`")
    name = match.group()[: match.start("sign") - match.start()].strip("'\" ")
    quoted = match["value"] != value
    if _ABOUT.fullmatch(match["rest"]) or PLACEHOLDER.fullmatch(value) or value[:1] in _OPENS_TEMPLATE:
        return False
    if quoted and " " in value and not _OF_PEOPLE.search(name):
        return False  # a text about a token, or what a command prints
    if (
        not quoted
        and not name.isupper()
        and name[0] != "-"
        and (_EXPRESSION.fullmatch(value) or not set(value).isdisjoint("[("))
    ):
        return False
    if match["sign"] == ":" and not quoted:
        prose = not re.search(r"[_-]|[a-z][A-Z]", name)  # read below
        ends = re.match(_END, match.string[match.end() :]) is not None or value[-1] in ".!"
        if prose or _DESCRIPTIONS.fullmatch(value.strip(".,;:!")) or not (ends or _STRONG.fullmatch(value)):
            return False
    return len(value) > 3 and value.casefold() not in name.casefold()


def _named(text: str) -> Iterator[tuple[re.Match[str], bool]]:
    for match in _NAMED_VALUE.finditer(text):
        yield match, _ends(match, text)
    for match in _NAMED_SECRET.finditer(text):
        yield match, ":" in match.group() and _ends(match, text)
    for match in _SHORT_NAME.finditer(text):
        yield match, _ends(match, text)
    for pattern in (_BESIDE, _AND_BESIDE, _GIVEN, _BESIDE_STRONG, _AS):
        for match in pattern.finditer(text):
            yield match, True


def _ends(match: re.Match[str], text: str) -> bool:
    """Whether the clause ends behind the value."""
    value = match["value"]
    return value is None or value[-1] in ".!" or re.match(_END, text[match.end() :]) is not None


def _is_stated(candidate: tuple[re.Match[str], bool]) -> bool:
    match, ends = candidate
    quoted = match.groupdict().get("quoted")
    if quoted is not None:
        return not PLACEHOLDER.fullmatch(quoted) and quoted[0] not in _OPENS_TEMPLATE
    value = next(each for name, each in match.groupdict().items() if each and name != "of").strip(".,:!?()")
    if PLACEHOLDER.fullmatch(value) or _DESCRIPTIONS.fullmatch(value):
        return False
    if match.re not in (_NAMED_VALUE, _NAMED_SECRET) and _OF_PASSWORDS.fullmatch(value):
        return False
    return _STRONG.fullmatch(value) is not None or (ends and _LETTERS.fullmatch(value) is not None)


def _is_paired(match: re.Match[str]) -> bool:
    value = match["value"].strip(".,:!?()")
    if PLACEHOLDER.fullmatch(value) or value[:1] in f"/{_OPENS_TEMPLATE}":
        return False
    # "as admin / root": letters alone are a password only where they stand close and the clause ends.
    if _STRONG.fullmatch(value) is not None:
        return True
    if re.match(r"(?:user|account)(?!/pass)", match.group(), re.IGNORECASE):
        return False
    close = not match.group().removesuffix(match["value"])[-2:].count(" ") or match["intro"] in {":", "("}
    ends = re.match(_END, match.string[match.end() :]) is not None
    return close and ends and _LETTERS.fullmatch(value) is not None and not _DESCRIPTIONS.fullmatch(value)


def _is_answer(match: re.Match[str]) -> bool:
    value = (match["value"] or match["other"]).strip(".,:!?()")
    return not any(each.fullmatch(value) for each in (PLACEHOLDER, _DESCRIPTIONS, _OF_PASSWORDS, _KEYSTROKES))
