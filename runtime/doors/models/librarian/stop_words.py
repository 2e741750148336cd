"""Stop words: those of a question that say nothing of what is looked for, by language."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


STOP_WORDS: dict[str, frozenset[str]] = {
    "en": _words("""
    a about above after again all also am an and another any anything are as ask at be because
    been before being below between both but by can cannot could did do does doing done down
    during each else ever every everything explain few find for from further get give go got
    had has have having he hello help her here hers hey hi him his how however i if in into is
    it its itself just know let like list look made make many may me mean mention mentioned
    might more most much must my need no nor not now of off ok okay on once one only or other
    our ours out over own please said say says search see shall she should show so some something
    still such summarise summarize summary tell than thank thanks that the their theirs them
    then there these they thing things think this those through to told too under until up
    upon us use very want was we well were what whatever when where whether which while who
    whom whose why will with within without would yes you your yours
    """),
    "de": _words("""
    aber alle allem allen aller alles als also am an auch auf aus bei bin bis bist bitte da
    damit dann das dass dazu dein deine dem den denn der des dich die dies diese diesem diesen
    dieser dieses dir doch du durch ein eine einem einen einer eines er es etwas euch für gab
    gibt hab habe haben hallo hast hat hatte hatten hier ich ihm ihn ihr ihre im in ist ja
    jede jeder kann kein keine können man mehr mein meine mich mir mit muss nach nicht nichts
    noch nun nur ob oder ohne sag schon sehr sein seine sich sie sind so soll sollen sonst
    steht über um und uns unser unsere unter vom von vor war waren warum was weil welche
    welchem welchen welcher welches wenn wer werden wie wieso will wir wird wo wurde wurden
    zeig zeige zu zum zur
    """),
    "fr": _words("""
    ai alors au aucun aussi autre aux avec avoir avons bonjour ce cela ces cet cette chez
    comme comment dans de des dire dis donc du elle elles en encore est et été être eu fait il
    ils je la le les leur leurs lui ma mais me merci mes mon ne nos notre nous on ont ou où
    par pas plus pour pourquoi qu quand que quel quelle quelles quels qui quoi sa sans se ses
    si son sont sur ta te tes toi ton tous tout toute tu un une vos votre vous
    """),
    "es": _words("""
    al algo como con cual cuál cuándo cuando de del dónde donde el él ella ellos en entre era
    es esta está este esto fue ha hay hola la las le les lo los me mi muy nos nosotros nuestra
    nuestro o para pero por porque qué que quién quien se ser si sí sin sobre son su sus
    también te tiene tu un una unas uno unos y ya yo busca dime hemos más
    """),
    "pt": _words("""
    ao aos às até com como da das de do dos e é ela ele em entre essa esse está eu foi isso
    isto já mais mas me meu minha na não nas no nos nós nossa nosso num numa o os ou para pela
    pelo pelos por porque qual quais quando que quem são se sem ser seu sua sobre também tem
    um uma você onde olá
    """),
    "it": _words("""
    a al alla anche che chi ci ciao come con cosa così cui da dal dalla degli dei del della
    delle di dove e ed è gli ha ho i il in io la le lo ma mi nel nella noi non nostra nostro
    per perché più qual quale quando quanto questa questo se si sono su sul sulla tra un una
    """),
    "nl": _words("""
    aan al alle als ben bij daar dat deze die dit doe een en er ging had heb hebben heeft het
    hoe hun ik jij je kan maar met mij mijn naar niet nog of om ons onze ook op te toen tot
    uit van voor waar waarom wanneer wat welke wel werd wie wij worden zijn zo zou
    """),
}


def stop_words_for(words: list[str]) -> frozenset[str]:
    """The stop words of the language that a question seems to be in; English in doubt.

    Only one language's: "die" says nothing in German and much in English.

    Args:
        words: the words of the question, case folded.
    """
    return max(STOP_WORDS.values(), key=lambda stops: sum(word in stops for word in words))
