"""Texts of our own in many languages, and the legacy encodings that pages in them come in."""

from __future__ import annotations

TEXTS: dict[str, tuple[str, tuple[str, ...]]] = {
    "english": (
        "A crawler visits pages, reads what they say and follows the links that it finds there. "
        "It’s polite: it “waits” between two visits – and café owners thank it. Nobody wants a "
        "robot that knocks every second at the same door.",
        ("windows-1252",),
    ),
    "french": (
        "Le robot visite les pages, lit ce qu’elles disent et suit les liens qu’il y trouve. "
        "Après chaque visite, il attend un peu ; les élèves de l’école apprécient cette façon "
        "d’être. Ça va très bien, même à Noël.",
        ("windows-1252", "iso-8859-15"),
    ),
    "german": (
        "Der Roboter besucht Seiten, liest, was dort steht, und folgt den Verweisen, die er "
        "findet. Zwischen zwei Besuchen wartet er natürlich höflich; müßige Fußgänger grüßen ihn "
        "über die Straße hinweg.",
        ("windows-1252", "iso-8859-1"),
    ),
    "spanish": (
        "El robot visita las páginas, lee lo que dicen y sigue los enlaces que encuentra. ¿Quién "
        "no conoce su paciencia? Después de cada visita espera un momento, pues mañana también "
        "habrá niños que quieran leer.",
        ("windows-1252",),
    ),
    "portuguese": (
        "O robô visita as páginas, lê o que dizem e segue as ligações que encontra. Depois de "
        "cada visita espera um pouco; não é educado bater à porta sem razão. Às vezes as "
        "informações já não estão lá.",
        ("windows-1252",),
    ),
    "swedish": (
        "Roboten besöker sidor, läser vad som står där och följer länkarna som den hittar. "
        "Mellan två besök väntar den artigt, för även på nätet är det trevligt att få vara ifred "
        "på kvällen.",
        ("windows-1252",),
    ),
    "finnish": (
        "Robotti vierailee sivuilla, lukee mitä niillä sanotaan ja seuraa linkkejä, joita se "
        "löytää. Kahden käynnin välillä se odottaa kohteliaasti, sillä kenenkään ei tarvitse "
        "pelätä yötä.",
        ("windows-1252",),
    ),
    "polish": (
        "Robot odwiedza strony, czyta, co na nich napisano, i podąża za odnośnikami, które tam "
        "znajduje. Między dwiema wizytami grzecznie czeka, ponieważ nikt nie chce, żeby ktoś "
        "ciągle pukał do jego drzwi. Zażółć gęślą jaźń.",
        ("windows-1250", "iso-8859-2"),
    ),
    "czech": (
        "Robot navštěvuje stránky, čte, co je na nich napsáno, a jde za odkazy, které tam najde. "
        "Mezi dvěma návštěvami slušně čeká, protože nikdo nechce, aby mu někdo stále klepal na "
        "dveře. Příliš žluťoučký kůň úpěl.",
        ("windows-1250", "iso-8859-2"),
    ),
    "hungarian": (
        "A robot oldalakat látogat, elolvassa, ami rajtuk áll, és követi a hivatkozásokat, "
        "amelyeket ott talál. Két látogatás között udvariasan vár, mert senki sem szereti, ha "
        "állandóan kopogtatnak az ajtaján. Árvíztűrő fúrógép.",
        ("windows-1250", "iso-8859-2"),
    ),
    "romanian": (
        "Robotul vizitează pagini, citeşte ce scrie acolo şi urmează legăturile pe care le "
        "găseşte. Între două vizite aşteaptă politicos, fiindcă nimănui nu-i place să i se bată "
        "întruna la uşă. Şi atât.",
        ("windows-1250", "iso-8859-2"),
    ),
    "russian": (
        "Робот посещает страницы, читает написанное и идёт по ссылкам, которые там находит. "
        "Между двумя посещениями он вежливо ждёт, потому что никто не любит, когда постоянно "
        "стучат в дверь. Съешь ещё этих мягких булок.",
        ("windows-1251", "koi8-r", "iso-8859-5", "ibm866"),
    ),
    "ukrainian": (
        "Робот відвідує сторінки, читає написане і йде за посиланнями, які там знаходить. Між "
        "двома відвідинами він ввічливо чекає, бо ніхто не любить, коли постійно стукають у "
        "двері. Її ґанок гарний.",
        ("windows-1251", "koi8-u"),
    ),
    "bulgarian": (
        "Роботът посещава страници, чете какво пише на тях и следва връзките, които намира там. "
        "Между две посещения той учтиво чака, защото никой не обича постоянно да му чукат на "
        "вратата. Това е всичко.",
        ("windows-1251",),
    ),
    "greek": (
        "Το ρομπότ επισκέπτεται σελίδες, διαβάζει τι γράφουν και ακολουθεί τους συνδέσμους που "
        "βρίσκει εκεί. Ανάμεσα σε δύο επισκέψεις περιμένει ευγενικά, γιατί σε κανέναν δεν αρέσει "
        "να του χτυπούν συνέχεια την πόρτα.",
        ("windows-1253", "iso-8859-7"),
    ),
    "turkish": (
        "Robot sayfaları ziyaret eder, orada yazanları okur ve bulduğu bağlantıları izler. İki "
        "ziyaret arasında kibarca bekler, çünkü kimse kapısının sürekli çalınmasını istemez. "
        "Işıl ışıl şehir, güneşli gökyüzü.",
        ("windows-1254",),
    ),
    "hebrew": (
        "הרובוט מבקר בדפים, קורא את מה שכתוב בהם והולך בעקבות הקישורים שהוא מוצא שם. בין שני "
        "ביקורים הוא ממתין בנימוס, כי איש אינו אוהב שדופקים לו בדלת כל הזמן. זה הכול להיום, "
        "ושלום לכולם.",
        ("windows-1255",),
    ),
    "arabic": (
        "يزور الروبوت الصفحات ويقرأ ما هو مكتوب فيها ويتبع الروابط التي يجدها هناك. وبين زيارتين "
        "ينتظر بأدب، لأن أحدا لا يحب أن يطرق بابه باستمرار. هذا كل شيء اليوم، والسلام عليكم "
        "جميعا.",
        ("windows-1256", "iso-8859-6"),
    ),
    "lithuanian": (
        "Robotas lankosi puslapiuose, skaito, kas juose parašyta, ir seka nuorodomis, kurias ten "
        "randa. Tarp dviejų apsilankymų jis mandagiai laukia, nes niekas nemėgsta, kai nuolat "
        "beldžiama į jo duris. Ąžuolas žalias.",
        ("windows-1257",),
    ),
    "vietnamese": (
        "Rô bốt ghé thăm các trang, đọc những gì viết ở đó và đi theo các liên kết mà nó tìm thấy.",
        (),
    ),
    "thai": (
        "หุ่นยนต์เยี่ยมชมหน้าเว็บ อ่านสิ่งที่เขียนไว้ และตามลิงก์ที่พบที่นั่น "
        "ระหว่างการเยี่ยมชมสองครั้ง มันรออย่างสุภาพ เพราะไม่มีใครชอบให้เคาะประตูตลอดเวลา",
        ("windows-874",),
    ),
    "japanese": (
        "ロボットはページを訪れ、そこに書かれていることを読み、見つけたリンクをたどります。二回の"
        "訪問の間には礼儀正しく待ちます。いつも戸をたたかれるのが好きな人はいないからです。今日は"
        "これで終わりです。",
        ("shift_jis", "euc-jp", "iso-2022-jp"),
    ),
    "chinese": (
        "机器人访问网页，阅读上面写的内容，并跟随在那里找到的链接。两次访问之间它会礼貌地等待，因"
        "为没有人喜欢别人不停地敲门。今天就到这里，谢谢大家的耐心。",
        ("gbk", "gb18030"),
    ),
    "taiwanese": (
        "機器人訪問網頁，閱讀上面寫的內容，並跟隨在那裡找到的連結。兩次訪問之間它會禮貌地等待，因"
        "為沒有人喜歡別人不停地敲門。今天就到這裡，謝謝大家的耐心。",
        ("big5",),
    ),
    "korean": (
        "로봇은 페이지를 방문하여 거기에 쓰여 있는 것을 읽고 찾아낸 링크를 따라갑니다. 두 번의 "
        "방문 사이에는 예의 바르게 기다립니다. 아무도 계속해서 문을 두드리는 것을 좋아하지 않기 "
        "때문입니다. 오늘은 여기까지입니다.",
        ("euc-kr",),
    ),
}
