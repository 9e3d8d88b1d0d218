"""The words by which `bearing` reads a sentence, by language. Data alone; each entry is a list of words.

`same`: words that say the same, a line each, the first is the one that stands for them.
`weaker`: what a word says and more; in a sentence without a negation it bears the words behind the colon.
`phrases`: what is read as what, longest first; `*` stands for any word, nothing behind `>` leaves the words out.
`when`: words with which a time begins that may follow a statement.
`openings`: phrases that are left out where a sentence begins with them.
"""

from __future__ import annotations

from collections.abc import Mapping

ENGLISH: Mapping[str, str] = {
    "self": "i me myself",
    "own": "my mine",
    "you": "you yourself",
    "yours": "your yours",
    "he": "he she they him himself herself themself themselves",
    "his": "his her hers their theirs",
    "user": "user speaker",
    "assistant": "assistant agent",
    "function": "a an the do does to_be there",
    "filler": "really very also just quite too well oh yes yeah actually please currently now so indeed hi hello hey",
    "droppable": """
        always usually often generally mostly today nowadays lately recently already finally still happily simply
        certainly definitely absolutely truly totally completely honestly big small little old new lovely great nice
        beautiful wonderful good dear sweet cute thanks cheers unfortunately luckily
    """,
    "conjunction": "and & plus",
    "preposition": """
        in at to from of with for by on near about since after before during through under over into between behind
        beside around across next
    """,
    "when": "yesterday today tomorrow tonight last next every",
    "negation": """
        not no never none nobody nothing neither nor without hardly barely rarely seldom scarcely few cannot longer
        less least only stopped quit
    """,
    "scope": """
        to would could should can may might must will shall want wants wish hope used going did refuse refused try
        tried plan
    """,
    "wall": """
        if unless whether suppose supposing supposed imagine assuming pretend pretending hypothetically wish wished
        hope hopes hoped or either who whom whose which when whenever say says said saying tell tells told telling
        think thinks thought believe believes believed claim claims claimed hear hears heard guess reckon wonder doubt
        doubts rumour rumor apparently supposedly allegedly according maybe perhaps possibly probably might seem seems
        seemed except dream dreams dreamed dreamt joke jokes false untrue wrong lie lies lied lying almost nearly
        otherwise instead fictional ask asks asked insist insists insisted write writes wrote assume
    """,
    "unsaid": "kidding joking jk sarcasm",
    "turn": "but however because although though yet whereas",
    "asking": """
        do does did am is are was were can could will would should shall may has what who whom whose why how which
        where when
    """,
    "same": """
        be am is are 'm 're
        have has 've own owns possess possesses
        like likes enjoy enjoys
        love loves adore adores
        hate hates detest detests loathe loathes
        live lives reside resides
        favourite favorite
        colour color
        mum mom mother mommy mummy
        dad father daddy
        big large huge
        child kid
        children kids
        car automobile
        job profession occupation
        use uses utilise utilize
        start starts begin begins
        buy buys purchase purchases
        bought purchased
        city town
        home house
        physician doctor
        bike bicycle
        phone telephone
        flat apartment
        holiday vacation
        go goes
        spouse partner
        study studies
    """,
    "weaker": """
        love: like
        hate: dislike
    """,
    "phrases": """
        's name be > named
        be called > named
        be named > named
        go by > named
        call @self > @self named
        have got > have
        have * named > 's * named
        have * called > 's * named
        be married to > married
        get married to > married
        got married to > married
        work for > work at
        work as > be
        be employed at > work at
        be employed by > work at
        be based in > live in
        live at > live in
        be fond of > like
        be keen on > like
        be from > come from
        be afraid of > fear
        be scared of > fear
        have allergy to > be allergic to
        would like to > want to
        would love to > want to
        not like > dislike
        not enjoy > dislike
        can not stand > hate
        not any > no
        not have any > have no
        no longer > no_longer
        not * any longer > no_longer *
        not * any more > no_longer *
        not * anymore > no_longer *
        have to > must
        need to > must
        be going to > will
        a lot >
        very much >
        so much >
        at all >
        as well >
        of course >
    """,
    "openings": """
        by way
        as you know
        you know
        @self told you that
        @self told you
        as @self said
        @self must say
        please note that
        note that
        for your information
        fyi
        btw
        to be honest
        remember that
        please remember that
        remember
        please remember
        not forget that
    """,
    "telling": """
        say that
        say
        said that
        said
        mention that
        mentioned that
        state that
        stated that
        report that
        told @assistant that
        tell @assistant that
        note that
    """,
    "numbers": "two three four five six seven eight nine ten eleven twelve",
    "months": "january february march april may june july august september october november december",
}

GERMAN: Mapping[str, str] = {
    "self": "ich mich mir",
    "own": "mein meine meinen meinem meiner meines",
    "you": "du dich dir ihnen",
    "yours": "dein deine deinen deinem deiner deines ihr ihre ihren ihrem ihrer ihres",
    "he": "er sie ihn sich",
    "his": "sein seine seinen seinem seiner seines ihr ihre ihren ihrem ihrer ihres",
    "user": "nutzer nutzerin benutzer benutzerin nutzers benutzers anwender anwenderin",
    "assistant": "assistent assistentin agent",
    "function": "der die das den dem des ein eine einen einem einer eines",
    "filler": "sehr auch wirklich ja eigentlich bitte jetzt derzeit aktuell so übrigens hallo hi doch nun gern gerne",
    "droppable": """
        immer meist meistens oft heute inzwischen endlich noch schon leider zum_glück große großen großer kleine
        kleinen kleiner alte alten alter neue neuen neuer schöne schönen gute guten danke
    """,
    "conjunction": "und sowie",
    "preposition": """
        in im an am auf aus bei beim mit nach von vom zu zum zur seit für über unter vor neben durch um gegen bis
    """,
    "when": "gestern heute morgen letzte letzten letztes nächste nächsten nächstes jede jeden jedes",
    "negation": "nicht kein keine keinen keinem keiner keines nie niemals nichts niemand ohne kaum selten weder nur",
    "scope": """
        zu würde würden könnte kann können möchte will wollen soll sollte muss müssen darf dürfen werde wird werden
        hoffe versuche war hatte
    """,
    "wall": """
        wenn falls ob angenommen stell vorausgesetzt oder entweder sagt sagte sagen gesagt meint meinte behauptet
        behauptete denkt denke dachte glaubt glaube glaubte hört gehört fragt fragte erzählt erzählte angeblich
        vielleicht wahrscheinlich vermutlich möglicherweise laut hoffentlich wünsche wünschte würde träume träumte
        gelogen lügt falsch außer fast beinahe als anscheinend scheint statt wer wen wem wessen welche welcher
        schreibt schrieb
    """,
    "unsaid": "scherz spaß witz",
    "turn": "aber jedoch sondern denn weil obwohl allerdings",
    "asking": """
        bin bist ist sind war habe hast hat haben kann kannst könnte soll sollte wird was wer wen wem warum wieso wie
        wo wann woher wohin welche welcher welches mag darf muss
    """,
    "same": """
        be bin bist ist sind seid
        have habe hast hat haben besitze besitzt
        mag mögen magst
        wohne wohnt wohnen lebe lebt leben
        heiße heißt heißen
        named genannt
        esse isst essen ißt
        fahre fährt fahren
        gebe gibt geben
        nehme nimmt nehmen
        sehe sieht sehen
        lese liest lesen
        schlafe schläft schlafen
        laufe läuft laufen
        trage trägt tragen
        treffe trifft treffen
        helfe hilft helfen
        spreche spricht sprechen
        weiß wissen
        mama mutter mutti
        papa vater vati
        auto wagen
        handy mobiltelefon
        beruf job
        no kein keine keinen keinem keiner keines
        hasse hasst hassen
        liebe liebt lieben
    """,
    "weaker": """
        liebe: mag
    """,
    "phrases": """
        's name be > heiße
        be named > heiße
        verheiratet mit be > verheiratet mit
        be verheiratet mit > verheiratet mit
        arbeite als > be
        be von beruf > be
        nicht mehr > nicht_mehr
        mag nicht > nicht_mag
        nicht mag > nicht_mag
    """,
    "openings": """
        wie gesagt
        @self habe you gesagt
        ach
        merk you
        denk daran
    """,
    "telling": """
        sagt
        sagte
        erwähnt
    """,
    "numbers": "zwei drei vier fünf sechs sieben acht neun zehn elf zwölf",
    "months": "januar februar märz april mai juni juli august september oktober november dezember",
}

FRENCH = {
    "self": "je j moi", "own": "mon ma mes", "user": "utilisateur utilisatrice", "function": "l le la les un une",
    "negation": "ne n pas jamais sans", "wall": "si dit dis pense crois ou peut", "asking": "est-ce pourquoi quand",
}  # fmt: skip
SPANISH = {
    "self": "yo", "own": "mi mis", "user": "usuario usuaria", "function": "el la los las un una",
    "negation": "no nunca jamás sin", "wall": "si dice digo dijo cree creo o quizás",
}  # fmt: skip
PORTUGUESE = {
    "self": "eu", "own": "meu minha meus minhas", "user": "usuário utilizador utilizadora", "function": "o os um uma",
    "negation": "não nunca jamais sem", "wall": "se diz digo disse acha acho ou talvez",
}  # fmt: skip
ITALIAN = {
    "self": "io", "own": "mio mia miei mie", "user": "utente", "function": "il lo gli un una l",
    "negation": "non mai senza", "wall": "se dice dico detto crede credo o forse",
}  # fmt: skip
DUTCH = {
    "self": "ik", "own": "mijn", "user": "gebruiker", "function": "de het een",
    "negation": "niet geen nooit zonder", "wall": "als zegt zei denk denkt of misschien",
}  # fmt: skip

LANGUAGES: Mapping[str, Mapping[str, str]] = {
    "en": ENGLISH, "de": GERMAN, "fr": FRENCH, "es": SPANISH, "pt": PORTUGUESE, "it": ITALIAN, "nl": DUTCH,
}  # fmt: skip

UNSPACED_READ_AS = (
    ("我们", "\u0001"), ("咱们", "\u0001"), ("私たち", "\u0001"), ("我自己", "@"), ("我", "@"), ("本人", "@"),
    ("わたし", "@"), ("私", "@"), ("僕", "@"), ("俺", "@"), ("@的名字是", "@叫"), ("@的名字叫", "@叫"),
    ("@名字叫", "@叫"), ("@名叫", "@叫"), ("@的", "@"), ("居住在", "住在"), ("ています", "ている"),
    ("でいます", "でいる"),    ("ではありません", "ではない"), ("じゃないです", "ではない"), ("じゃない", "ではない"),
    ("です", ""), ("といいます", "だ"),
)  # fmt: skip
"""What is read as what in a text without spaces, in this order; `@` is who speaks."""
UNSPACED_USER = ("该用户", "此用户", "这位用户", "用户", "使用者", "ユーザー", "利用者")
UNSPACED_ASIDE = (
    "现在", "目前", "其实", "真的", "非常", "很", "也", "吧", "呢", "啊", "呀", "哦", "今は", "とても", "本当に", "よ",
)  # fmt: skip
"""What may be left out of a text without spaces."""
UNSPACED_TURNS = ("但是", "不过", "但", "でも")
"""With which another statement begins."""
UNSPACED_WALLS = (
    "如果", "要是", "假如", "假设", "据说", "听说", "说", "以为", "认为", "觉得", "可能", "也许", "或", "吗", "希望",
    "もし", "なら", "たら", "と言", "らしい", "そうだ", "かもしれ", "と思", "でしょう", "ですか",
    "开玩笑", "冗談", "假的", "不是真的", "骗", "谎", "嘘",
)  # fmt: skip
