//! Frequent words that identify languages: words that almost every page has, and for similar languages also words that only
//! one of them has.

/// Languages: the code (ISO 639-1) and the words, in lower case.
pub(crate) const LANGUAGES: [(&str, &str); 14] = [
    (
        "cs",
        "a aby ale ani až bude by byl byla být co do i jak jako je jeho její jen ji již k kde který která které lze má mezi mu na nebo \
         není o od po pod podle pro protože při se si své také to ve však z za že",
    ),
    (
        "da",
        "af at blev bliver da de den der deres det dig efter eller en end er et for fra ham han har hun hvad hvis hvor i ikke jeg kan \
         kun kunne med mellem meget men mig nogle noget når og også om op over på sig skal som til uden ved var vi vil være",
    ),
    (
        "de",
        "aber als am an auch auf aus bei bis das dass dem den der des die durch ein eine einem einen einer er es für haben hat ich im \
         in ist kann mit nach nicht noch nur oder sich sie sind so über um und unter von vor war werden wie wir wird zu zum zur",
    ),
    (
        "en",
        "about after also an and are as at be been but by can from had has have he her his how if in into is it its more not of on or \
         our she so than that the their there they this to was we were what when which who will with would you your",
    ),
    (
        "es",
        "al como con cuando de del desde donde el ella en entre es esta este están fue ha hasta hay la las le lo los más me muy no \
         nos o para pero por porque que se ser si sin sobre su sus también tiene todo un una y ya",
    ),
    (
        "fi",
        "että ei en hän he ja jo joka jos jotka kaikki kanssa kuin kun kuten minä mukaan mutta myös ne niin niitä nyt oli olla olivat on \
         ole ovat se sekä sen sitä tai tämä tämän vain vaan voi voidaan vuoden vuonna",
    ),
    (
        "fr",
        "au aussi aux avec ce ces cette comme dans de des du elle en est et être il ils je la le les leur mais même ne nous on ont ou \
         où par pas plus pour qu que qui sa sans se ses si son sont sur un une vous",
    ),
    (
        "it",
        "a al alla anche che chi ci come con da dal dalla dei del della delle di dove e ed era gli ha hanno i il in io la le lo ma nel \
         nella non o per perché più quando quella questo questa se si sono su sua sul tra un una è",
    ),
    (
        "nl",
        "aan al als bij dan dat de deze die dit door een en er geen had heeft het hij hoe ik in is kan maar meer met mijn na naar niet \
         nog of om onder ook op over te tot uit van veel voor was wat we werd wij wordt zich zij zijn zo",
    ),
    (
        "no",
        "alle at av ble blir da de deg den der det du eller en enn er et etter for fra ha han har hun hva hvis hvor hvordan i ikke jeg \
         kan kunne med meg mellom men mye nå noe noen når og også om opp over på seg skal som til uten ved var vi vil være å",
    ),
    (
        "pl",
        "aby ale albo być był była było by co czy dla do gdzie go i ich jak jako je jego jej jest już który która które lub ma może na \
         nad nie o od oraz po pod przez przy są się tak także tego ten to tym w we z za że",
    ),
    (
        "pt",
        "a ao aos as até com como da das de do dos e ela ele em entre era essa esse esta este eu foi há isso já mais mas me mesmo na não \
         nas no nos o os ou para pela pelo por qual quando que se sem ser seu sua são também um uma você à é",
    ),
    (
        "sk",
        "a aby aj ako ale alebo ani až bol bola bolo byť by čo do ho i ich iba je jeho jej k kde keď ktorá ktoré ktorý len má medzi na nie \
         o od po pod podľa pre pri s sa si sú tak také to tým už v však vo z za že",
    ),
    (
        "sv",
        "alla att av blev blir då de dem den deras det dig du där efter eller en ett för från ha han har hon hur i inte jag kan kunde \
         man med mellan men mig mot mycket någon något några när och också om på sig ska som till under upp utan vad var vi vid är än",
    ),
];
