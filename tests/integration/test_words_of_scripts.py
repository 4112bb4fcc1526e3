"""RET-22: accents, scripts and characters beyond ASCII, on the lexical channel alone."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from contextlib import closing

import pytest

from tests.support.shelf import Find, Shelf, pairs, words
from weft.domain.documents import ContentType

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def find(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shelf]:
    with closing(Shelf(tmp_path_factory.mktemp("words"))) as shelf:
        yield shelf


ACCENTED = words(
    "Sänger Köchin Zürich Höhe café naïve résumé señor Ångström façade über crème garçon piñata jalapeño "
    "Dvořák Čapek Gdańsk fiancé élan rôle Škoda"
)


@pytest.mark.parametrize("word", ACCENTED)
@pytest.mark.parametrize(("typed", "written"), [("NFC", "NFD"), ("NFD", "NFC")])
def test_one_unicode_form(find: Find, word: str, typed: str, written: str) -> None:
    """However letters are composed in the query and in the text."""
    texts = [f"Here is {unicodedata.normalize(written, other)} again." for other in ACCENTED]  # type: ignore[arg-type]
    right = texts[ACCENTED.index(word)]
    assert find(texts, unicodedata.normalize(typed, word))[0] == right  # type: ignore[arg-type]


def plain(word: str) -> str:
    return "".join(letter for letter in unicodedata.normalize("NFKD", word) if not unicodedata.combining(letter))


@pytest.mark.parametrize("word", ACCENTED)
def test_accents_are_a_weaker_match(find: Find, word: str) -> None:
    """Without them a word is found too, after the one that is as it was typed."""
    texts = [f"There was {form(other)} again." for other in ACCENTED for form in (plain, str)]
    right, other = f"There was {word} again.", f"There was {plain(word)} again."
    assert find(texts, word)[:2] == [right, other]
    assert find(texts, plain(word))[:2] == [other, right]


POINTED = pairs(
    "كِتَاب كتاب, مُحَمَّد محمد, سَلَام سلام, عَرَبِيّ عربي, مَدْرَسَة مدرسة, بَيْت بيت, شَمْس شمس, أحمد احمد, إدارة ادارة, مؤسسة موسسة, "
    "שָׁלוֹם שלום, סֵפֶר ספר, בַּיִת בית, יֶלֶד ילד, מֶלֶךְ מלך, תּוֹרָה תורה, דָּבָר דבר, עִבְרִית עברית, אֶרֶץ ארץ, לֶחֶם לחם"
)


@pytest.mark.parametrize(("pointed", "plain"), POINTED)
def test_vowel_points_are_a_weaker_match(find: Find, pointed: str, plain: str) -> None:
    """Arabic and Hebrew are found with them and without."""
    for typed, written in ((pointed, plain), (plain, pointed)):
        assert find([f"هنا {one[written == plain]} פה" for one in POINTED], typed)[0] == f"هنا {written} פה"


FOLDED = pairs(
    "straße strasse, Fuß fuss, Größe grosse, ﬁle file, ﬂow flow, ＡＰＩ api, ｋｅｙ key, œuvre oeuvre, "
    "Ærø aero, Łódź lodz, smørrebrød smorrebrod, ①② 12, ｶﾀｶﾅ カタカナ, Øresund oresund, ﬀord fford, "
    "maßstab massstab, x² x2, Grüße grusse, ﬃx ffix, đồng dong, Þór thor"
)


@pytest.mark.parametrize(("one", "other"), FOLDED)
def test_width_ligatures_and_letters_of_two(find: Find, one: str, other: str) -> None:
    """ß and ss, ligatures, full and half width, in both directions."""
    for typed, written in ((one, other), (other, one)):
        assert find([f"Zeile mit {written} darin."], typed)[:1] == [f"Zeile mit {written} darin."]


BEYOND = pairs(
    "größeBerechnen größe_berechnen, получитьДанные получить_данные, ΜέγεθοςΣελίδας μέγεθος_σελίδας, "
    "prüfeÜberweisung prüfe_überweisung, zahlungsÜbersicht zahlungs_übersicht, öffneDatei öffne_datei, "
    "числоСтрок число_строк, éléveNote éléve_note, añadirFila añadir_fila, çokSatır çok_satır, "
    "žlutýKůň žlutý_kůň, łączDane łącz_dane, читатьФайл читать_файл, kaçÖğe kaç_öğe, ånedeÅr ånede_år, "
    "lähdeKoodi lähde_koodi, створитиКлюч створити_ключ, tälleÄäni tälle_ääni, őszÁllomás ősz_állomás, "
    "ścieżkaPliku ścieżka_pliku, ΝέοΑρχείο νέο_αρχείο"
)


@pytest.mark.parametrize("kind", [ContentType.CODE, ContentType.TEXT])
@pytest.mark.parametrize(("one", "other"), BEYOND)
def test_names_beyond_ascii(find: Find, one: str, other: str, kind: ContentType) -> None:
    """They keep their letters, and are found in the other spelling and by each of their words."""
    for written in (one, other):
        texts = [f"def {pair[written == other]}(x):\n    return x" for pair in BEYOND]
        for typed in (one, other, *other.split("_")):
            assert find(texts, typed, kind=kind)[0] == f"def {written}(x):\n    return x"


CHINESE = {
    "数据库": "请每天备份数据库的全部内容。",
    "密码": "用户忘记密码以后可以重新设置。",
    "服务器": "服务器在夜里自动重启。",
    "网络": "检查网络连接是否正常。",
    "文件": "把文件保存在本地磁盘上。",
    "内存": "程序占用的内存太多。",
    "缓存": "清除缓存之后再试一次。",
    "日志": "错误写入日志里。",
    "线程": "每个线程有自己的栈。",
    "搜索": "搜索引擎返回十条结果。",
}
JAPANESE = {
    "検索": "全文を検索する機能があります。",
    "ログイン": "ログインできない場合はこちら。",
    "食べる": "昨日は寿司を食べました。",
    "バックアップ": "毎晩バックアップを取ります。",
    "設定": "設定ファイルを編集してください。",
    "会議": "会議は三時から始まる。",
    "削除": "不要な行を削除した。",
    "走る": "犬が公園を走っていた。",
    "天気": "東京都の天気は晴れです。",
    "電車": "電車が遅れている。",
}
KOREAN = {
    "게임": "아이들이 게임을 시작한다.",
    "규칙": "규칙이 바뀌었다고 한다.",
    "비밀번호": "비밀번호를 잊어버렸을 때.",
    "서버": "서버가 밤에 멈췄다.",
    "데이터베이스": "데이터베이스에서 읽는다.",
    "학교": "학교까지 걸어서 간다.",
    "파일": "파일은 여기에 있다.",
    "검색": "검색으로 찾는다.",
    "날씨": "날씨도 좋다.",
    "기차": "기차와 버스가 온다.",
    "물": "물을 마신다.",
}
THAI = {
    "ฐานข้อมูล": "การสำรองฐานข้อมูลทุกวัน",
    "รหัสผ่าน": "ลืมรหัสผ่านของคุณหรือไม่",
    "เซิร์ฟเวอร์": "รีสตาร์ทเซิร์ฟเวอร์ตอนกลางคืน",
    "ค้นหา": "วิธีค้นหาเอกสาร",
    "ไฟล์": "บันทึกไฟล์ลงในเครื่อง",
    "อากาศ": "วันนี้อากาศดีมาก",
    "รถไฟ": "ขึ้นรถไฟไปเชียงใหม่",
    "โรงเรียน": "เด็กไปโรงเรียนแล้ว",
    "กฎ": "เราเปลี่ยนกฎใหม่",
    "เกม": "พวกเขาเล่นเกมกัน",
}
MIXED = {
    "API 密钥": "在控制台创建 API 密钥再用。",
    "Docker コンテナ": "Dockerのコンテナを再起動する。",
    "Redis 캐시": "Redis의 캐시를 비운다.",
    "Python 클래스": "Python에서 클래스를 만든다.",
    "HTTP ヘッダー": "HTTPのヘッダーを読む。",
    "GPU 显存": "GPU的显存不足。",
}
SCRIPTS = {**CHINESE, **JAPANESE, **KOREAN, **THAI, **MIXED}


@pytest.mark.parametrize("query", SCRIPTS)
def test_scripts_without_blanks_and_words_with_particles(find: Find, query: str) -> None:
    """Chinese, Japanese, Korean, Thai and mixed texts, all in one index."""
    assert find(list(SCRIPTS.values()), query)[0] == SCRIPTS[query]


UNSEEN = [
    "so\u00adft",
    "ze\u2060ro",
    "\ufeffhead",
    "le\u200eft",
    "ri\u200fght",
    "ne\u202ast\u202c",
    "is\u2066olate\u2069",
]


@pytest.mark.parametrize("written", UNSEEN)
def test_characters_that_nobody_sees_are_none(find: Find, written: str) -> None:
    """Soft hyphens, joiners, marks of direction."""
    typed = "".join(letter for letter in written if unicodedata.category(letter) != "Cf")
    assert find([f"There is {written} text."], typed) == [f"There is {written} text."]
    assert find([f"There is {typed} text."], written) == [f"There is {typed} text."]


SIGMA = pairs(
    "λόγος λόγοσ, οδός ΟΔΌΣ, χρόνος ΧΡΌΝΟΣ, νόμος νόμοσ, κόσμος ΚΌΣΜΟΣ, τόπος τόποσ, φόρος ΦΌΡΟΣ, "
    "λόφος λοφοσ, ήλιος ΗΛΙΟΣ, ουρανός ουρανοσ"
)


@pytest.mark.parametrize(("one", "other"), SIGMA)
def test_greek_has_one_sigma(find: Find, one: str, other: str) -> None:
    """At the end of a word, too, in capitals and without accents."""
    for typed, written in ((one, other), (other, one)):
        assert find([f"Εδώ {pair[written == other]} πάλι" for pair in SIGMA], typed)[0] == f"Εδώ {written} πάλι"


INFLECTED = pairs(
    "بيانات البيانات, مكتبة المكتبة, خادم الخادم, ملف والملف, شبكة بالشبكة, كتاب كتابها, برنامج للبرنامج, "
    "مستخدم المستخدمين, معلومة معلومات, كتابخانه کتابخانه, فايل فایل, "
    "किताब किताबों, फ़ाइल फ़ाइलें, लड़का लड़के, नियम नियमों, भाषा भाषाओं, शब्द शब्दों, संदेश संदेशों, सवाल सवालों, खाता खाते"
)


@pytest.mark.parametrize(("one", "other"), INFLECTED)
def test_arabic_and_hindi_words_with_their_articles_and_endings(find: Find, one: str, other: str) -> None:
    """A weaker match, by Lucene's analysers for them."""
    for typed, written in ((one, other), (other, one)):
        texts = [f"هنا {pair[written == other]} यहाँ" for pair in INFLECTED]
        assert find(texts, typed)[0] == f"هنا {written} यहाँ"
