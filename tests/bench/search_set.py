# ruff: noqa: RUF001
"""Notes in several languages, and questions with the one note that answers each.

Kinds: `words` shares its rare words with the note, `meaning` hardly any word, `across` is
asked in another language, `cjk` is Chinese, Japanese or Korean.
"""

NOTES: dict[str, str] = {
    "en/oven.md": "# Oven\n\nThe deck oven from Wachtel was serviced in March. The technician "
    "replaced two heating elements and the thermostat; error code E417 is gone.",
    "en/rent.md": "# Lease\n\nThe landlord raises what we pay for the premises by four percent "
    "from next spring. Notice period is six months.",
    "en/holiday.md": "# Time off\n\nEverybody may take twenty-five days a year. Ask Miriam two "
    "weeks ahead; nobody is away in December.",
    "en/interview.md": "# Hiring\n\nWe spoke with three candidates for the apprentice position. "
    "Jonas kneads well and comes on time; the others did not turn up.",
    "en/water.md": "# Leak\n\nWater came through the ceiling of the storage room after the storm. "
    "The insurer was told on Friday under claim KX-2291.",
    "en/backup.md": "# Computers\n\nThe till writes a copy of every sale to the disk in the safe. "
    "Restoring was tried once and took forty minutes.",
    "en/allergy.md": "# Allergens\n\nCakes with hazelnuts get a red sticker. A guest had a strong "
    "reaction last summer, so the staff now ask before serving.",
    "en/bikes.md": "# Deliveries\n\nTwo cargo bicycles bring rolls to the cafes before six. In "
    "snow the van drives instead.",
    "en/solar.md": "# Roof\n\nPanels on the southern side would cover a third of the electricity. "
    "The quote of Heliomax is 18,400 euros.",
    "en/school.md": "# Visit\n\nThe second graders come on Tuesday and shape pretzels. Each child "
    "takes one home.",
    "en/flour.md": "# Mill\n\nSpelt comes from the Brenner mill in sacks of twenty-five kilos, "
    "wheat from the cooperative. Order by Wednesday.",
    "en/noise.md": "# Neighbours\n\nMrs Kaminski upstairs complains that the mixer wakes her at "
    "three in the morning. Rubber feet were ordered.",
    "de/kasse.md": "# Registrierkasse\n\nDie neue Kasse braucht ein Zertifikat der Finanzbehörde. "
    "Frist ist der dreißigste Juni.",
    "de/kuendigung.md": "# Personal\n\nFrau Albers verlässt uns zum Monatsende und zieht nach "
    "Bremen. Ihre Schicht übernimmt vorerst Deniz.",
    "de/reinigung.md": "# Hygiene\n\nDie Kühlräume werden jeden Montag gewischt und "
    "desinfiziert. Der Plan hängt neben der Tür.",
    "de/weihnachten.md": "# Advent\n\nAb November backen wir Stollen und Lebkuchen. "
    "Vorbestellungen nimmt der Laden bis zum ersten Dezember an.",
    "de/kredit.md": "# Bank\n\nDie Sparkasse gibt uns ein Darlehen über dreißigtausend Euro für "
    "den Umbau. Zinsen: 3,9 Prozent.",
    "fr/levain.md": "# Levain\n\nNourrir le levain chaque matin avec de la farine de seigle et de "
    "l'eau tiède. Il double en quatre heures.",
    "fr/fournisseur.md": "# Beurre\n\nLa laiterie de Charente livre le beurre le jeudi. La "
    "facture est payée à trente jours.",
    "fr/panne.md": "# Panne\n\nLa chambre froide est tombée en panne dimanche; quarante kilos de "
    "crème ont été jetés.",
    "es/cafe.md": "# Café\n\nCompramos granos de Huila, tostados cada lunes. La máquina necesita "
    "una junta nueva.",
    "es/clientes.md": "# Quejas\n\nVarios clientes dicen que el pan llega frío al hotel. Vamos a "
    "probar cajas con aislamiento.",
    "es/impuestos.md": "# Impuestos\n\nLa declaración trimestral se presenta antes del veinte de "
    "abril; la lleva la gestora Pilar.",
    "ru/dostavka.md": "# Доставка\n\nКурьер привозит дрожжи по вторникам. Склад закрыт в "
    "праздники.",
    "ru/obuchenie.md": "# Обучение\n\nНовые сотрудники две недели учатся формовать хлеб у "
    "мастера Ольги.",
    "zh/dongjing.md": "# 东京出差\n\n五月去东京参观三家面包店,学习红豆面包的做法。酒店已经预订。",
    "zh/huiyi.md": "# 会议记录\n\n大家同意把吐司的价格提高一元,从下个月开始。",
    "zh/shebei.md": "# 设备\n\n搅拌机的电机坏了,维修人员周四来更换零件。",
    "zh/yuangong.md": "# 员工\n\n小王想在暑假请假两周去旅行,李姐替他值班。",
    "ja/shinamono.md": "# 新商品\n\n来週から抹茶メロンパンを販売する。値段は二百八十円。",
    "ja/kyuujitsu.md": "# 休業日\n\n年末年始は十二月三十一日から一月三日まで店を閉める。",
    "ja/reizouko.md": "# 冷蔵庫\n\n業務用冷蔵庫の温度が上がりすぎるので、修理を頼んだ。",
    "ko/sikjajae.md": "# 식자재\n\n버터 가격이 올라서 다른 공급업체를 찾고 있다.",
    "ko/haengsa.md": "# 행사\n\n토요일에 동네 축제에서 도넛을 무료로 나눠 준다.",
}

_GOODS = ("rye flour", "sugar", "paper bags", "salt", "raisins", "yeast", "poppy seed", "jam")
_NAMES = ("Deniz", "Olga", "Miriam", "Jonas", "Pilar", "Wang", "Sato")
NOTES |= {
    f"deliveries/{number:03}.md": (
        f"# Delivery note\n\nDelivery LN-{number * 37 % 1000:04} of {_GOODS[number % 8]} was "
        f"signed by {_NAMES[number % 7]} in week {number % 52 + 1}."
    )
    for number in range(200)
}
"""Many that are alike but for a number, as in every real folder."""

QUERIES: tuple[tuple[str, str, str], ...] = (
    ("error code E417", "en/oven.md", "words"),
    ("claim KX-2291", "en/water.md", "words"),
    ("Heliomax quote", "en/solar.md", "words"),
    ("Brenner mill spelt", "en/flour.md", "words"),
    ("Mrs Kaminski", "en/noise.md", "words"),
    ("Jonas apprentice", "en/interview.md", "words"),
    ("Sparkasse Darlehen Zinsen", "de/kredit.md", "words"),
    ("Frau Albers Bremen", "de/kuendigung.md", "words"),
    ("laiterie de Charente", "fr/fournisseur.md", "words"),
    ("gestora Pilar", "es/impuestos.md", "words"),
    ("LN-0370", "deliveries/010.md", "words"),
    ("delivery LN-0629", "deliveries/017.md", "words"),
    ("who signed LN-0221", "deliveries/033.md", "words"),
    ("what came with LN-0811", "deliveries/103.md", "words"),
    ("LN-0550 week", "deliveries/150.md", "words"),
    ("how many vacation days do employees get", "en/holiday.md", "meaning"),
    ("someone was sick after eating nuts", "en/allergy.md", "meaning"),
    ("the building owner wants more money from us", "en/rent.md", "meaning"),
    ("damage from heavy rain", "en/water.md", "meaning"),
    ("children learning to bake", "en/school.md", "meaning"),
    ("renewable energy plans", "en/solar.md", "meaning"),
    ("protecting our sales data from loss", "en/backup.md", "meaning"),
    ("person disturbed by loud machines at night", "en/noise.md", "meaning"),
    ("eco-friendly transport of bread", "en/bikes.md", "meaning"),
    ("Wer putzt die Kühlung und wann?", "de/reinigung.md", "meaning"),
    ("eine Mitarbeiterin hört auf", "de/kuendigung.md", "meaning"),
    ("Geld leihen für die Renovierung", "de/kredit.md", "meaning"),
    ("comment entretenir la pâte fermentée", "fr/levain.md", "meaning"),
    ("los huéspedes no están contentos con la entrega", "es/clientes.md", "meaning"),
    ("кто учит новичков", "ru/obuchenie.md", "meaning"),
    ("borrowing money from the bank", "de/kredit.md", "across"),
    ("an employee is leaving the company", "de/kuendigung.md", "across"),
    ("christmas cookies and pre-orders", "de/weihnachten.md", "across"),
    ("feeding the sourdough", "fr/levain.md", "across"),
    ("cream was thrown away because the cold room broke", "fr/panne.md", "across"),
    ("quarterly tax return deadline", "es/impuestos.md", "across"),
    ("coffee beans supplier", "es/cafe.md", "across"),
    ("yeast delivery day", "ru/dostavka.md", "across"),
    ("business trip to Tokyo", "zh/dongjing.md", "across"),
    ("the motor of the mixer is broken", "zh/shebei.md", "across"),
    ("new product matcha melon bread", "ja/shinamono.md", "across"),
    ("when is the shop closed for new year", "ja/kyuujitsu.md", "across"),
    ("butter price went up, looking for another supplier", "ko/sikjajae.md", "across"),
    ("free donuts at the neighbourhood festival", "ko/haengsa.md", "across"),
    ("Urlaub der Angestellten", "en/holiday.md", "across"),
    ("fuite d'eau et assurance", "en/water.md", "across"),
    ("东京", "zh/dongjing.md", "cjk"),
    ("红豆面包", "zh/dongjing.md", "cjk"),
    ("吐司涨价", "zh/huiyi.md", "cjk"),
    ("谁要请假", "zh/yuangong.md", "cjk"),
    ("搅拌机维修", "zh/shebei.md", "cjk"),
    ("メロンパンの値段", "ja/shinamono.md", "cjk"),
    ("冷蔵庫の修理", "ja/reizouko.md", "cjk"),
    ("年末年始", "ja/kyuujitsu.md", "cjk"),
    ("버터 가격", "ko/sikjajae.md", "cjk"),
    ("동네 축제", "ko/haengsa.md", "cjk"),
)
