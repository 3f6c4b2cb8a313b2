"""How people speak of moves, in English and Chinese: the patterns by which `promises` reads a text.

All are for clauses in small letters with plain apostrophes. A new form of words belongs here.
"""

from __future__ import annotations

import re


def _re(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


def _any(*words: str) -> str:
    return f"(?:{'|'.join(' '.join(words).split())})".replace("_", " ")


def _being_done(act: str) -> str:
    """Return the form in -ing of a verb, perhaps with more words behind a low line."""
    verb, *more = act.split("_")
    if re.fullmatch(r"(?:sub|com)mit|[^aeiou]{0,2}[iu][dtnp]|set|drop", verb):
        verb += verb[-1]
    return "_".join([re.sub(r"e$", "", verb) + "ing", *more])


# -- sentences -------------------------------------------------------------------------------------
NUMBER = r"[+-]?\$?\d[\d,]*(?:\.\d+)?"
TAG = _re(
    r",\s*(?:ok(?:ay)?|al(?:l )?right|agreed|right|deal|yes|yeah|shall we|(?:do|will|can|are)n't "
    r"(?:we|you|i)|(?:is|does) (?:that|this) (?:ok(?:ay)?|fine|work)[\w ]*|what do you (?:say|"
    r"think)|"
    r"sounds? good|any objections?|who(?: is|'s) in|who joins)\s*\?+|"
    r",(?:好吗|好不好|怎么样|如何|对吧|同意吗)\?+"
)
ASKS_ALL = _re(
    r"^(?:so |and |well,? |hey,? )*(?:(?:(?:how|what) about|what do you say,?) (?:we|us|if we|"
    r"every\w+|all of us|each of "
    r"us|this)|why (?:don't|not|do not) (?:we|all|every\w+))\b"
)
WHOLE = _re(  # all one has, and how much that is
    rf"\b(?:all|entire|whole|full|total|remaining)(?: of)?(?: my| of my)?(?: \w+){{0,3}}?,?"
    rf"(?: of| which is| at| is)? (?={NUMBER})"
)
HAN_ASKS_ALL = _re(r"^((?:我们|咱们|大家).+?)(?:好吗|好不好|怎么样|如何|对吧|同意吗)\?+$")
QUESTION = _re(
    r"\?|^(?:so |and |but |well,? )*(?:who|what|why|which|how|where|whose|should (?:i|we)|shall|"
    r"do (?:you|i|we)|does|did|can (?:i|we|you)|could (?:i|we|you)|would (?:you|i|we|it)|"
    r"will (?:you|they|we)|are (?:you|we|they)|is (?:it|that|there|anyone))\b|[吗呢]$|"
    r"谁|为什么|哪[个里边]|怎么办"
)
CONDITION = _re(
    r"(?<!even )(?<!as )\bif\b|\bunless\b|\bwhen(?:ever)?\b|\bonce (?!more\b|again\b|per\b|a\b|"
    r"and\b)|"
    r"\b(?:provided|providing|suppos(?:e|ing)|assuming|on (?:the )?condition|imagine)\b|"
    r"\b(?:as|so) long as\b|\bas soon as\b|\bdepend(?:s|ing)\b|\bin that case\b|^in case\b|"
    r"^(?:should|had|were) (?:i|you|we|it|the|every\w+|all|player\w*|they|he|she|any\w*|"
    r"no\w*)\b(?= )|"
    r"\bin (?:your|his|her|their) (?:shoes|place|position)\b|\bwere it (?:not|up)\b|"
    r"\bi were\b|\bwould have\b|\bcould have\b|"
    r"如果|要是|假如|假设|倘若|若|除非|你们?[^,]{1,8}我[就也]|只要(?!\d)|只有(?!\d)|的话|万一|"
    r"一旦|换作|换成我是|才(?=投|出|选|去|要|定|会)"
)
APART = _re(  # a condition that a statement only goes on with
    r",?\s+(?:and|but|so|which|that)\s+(?=(?:even )?(?:if|when)\b)|,?\s*\b(?:because|since|so "
    r"that(?!'s)|"
    r"in order|(?:knowing|hoping) (?=that|for|to|the)|(?:given|(?<!m )(?<!am )considering) "
    r"(?=that|the|my|how|our|this|all|your)|(?<!soon )(?<!long )(?<!much )as (?=(?:i|you|we|it|"
    r"player\w*|they|this|that|the)\b))\b|\s*,?\s*(?=even if\b|even though\b|no matter\b|"
    r"regardless\b|"
    r"whether or not\b)|(?=即使|哪怕|不管|无论|就算)"
)
CLAUSES = _re(
    r"(?<!\d),|,(?!\s*\d)|:\s|:$|\s[-–—]+\s|—|\s*(?<!\d )\band\b\s*|\s*\band\b(?! ?[\d$])\s*|"
    r"\s*\b(?:but|so(?! far| much| many| that(?!'s)| long)|because|since|while|whereas|"
    r"although|though|therefore|hence|thus|then|however|yet|(?<!soon )(?<!long )(?<!much )as "
    r"(?=(?:i|you|we|it|player\w*|they|"
    r"the)\b))\b\s*|但是|但|所以|因此|于是|不过|因为|而且|然后|可是|那么"
)

# -- clauses ---------------------------------------------------------------------------------------
MAYBE_PAST = _re(r"^\s*(?:bid|set|put|cut)\b")  # verbs whose past is like their present
WENT_ON = _re(
    r"^(?:\w+ly |still |then ){0,3}(?:(?!need|proceed|bid)\w+ed|lost|won|got|was|had|made|kept|"
    r"sold|"
    r"saw)\b"
)
NEGATION = _re(
    r"\b(?:not|never|no longer|cannot|neither|nor|refuse|avoid(?:ing)?|stop|hardly|no way|without|"
    r"reluctant|decline to|against)\b|n't\b|\bwont\b|\bdont\b|不(?!变|过|错)|别|没|绝无|拒绝|避免"
)
HEDGE = _re(
    r"\b(?:may|might|could|maybe|perhaps|possibly|probably|presumably|likely|not sure|unsure|"
    r"undecided|consider|(?:am|'m|was|been) considering|thinking (?:about|of)|tempted|lean(?:ing)?|"
    r"either|whether|in theory|wonder(?:ing)?|torn|somewhere|something like)\b|"
    r"可能|也许|或许|大概|说不定|考虑|犹豫|不知道|不确定|没想好|好像|(.)不\1|或者|要不"
)
BELIEF = _re(
    r"\b(?:think|believe|guess|assume|suppose|expect|suspect|predict|hope|doubt|bet|fear|imagine|"
    r"feel|reckon|estimate|know|heard?|sure|afraid|anticipate|see|saw|understand|notice[sd]?|"
    r"love|like (?:it|that|how)|figure|gather|worry|wish)\b|\bin my (?:view|opinion)\b|"
    r"觉得|认为|猜(?!\d+$)|估计|相信|预计|预测|希望|以为|怀疑|看到|听说|想(?:你|他|她|大家|别人|"
    r"player|对方|大部分|大多|多数|所有人|有人|很多)|"
    r"担心|知道"
)
MUST = _re(r"\b(?:must|have to|need to)\b|\bi'm \w+ing\b|\bi am \w+ing\b")
LONG_AGO = _re(
    r"\b(?:last|previous|past|first|earlier) (?:\w+ )?(?:round|time|week|night|turn|day|period|"
    r"game|"
    r"one|bid|price|number)s?\b|\b(?:before|previously|earlier|ago|yesterday|already|so far|twice|"
    r"(?:each|every|most|in all) (?:\w+ )?(?:time|round|game)s?|back then|used to|all along|at "
    r"first|until now|till now|up to now|in the past|(?<!for )(?<!at )once(?! more| again))\b|"
    r"上(?:一|个|一个)?(?:轮|次|周|期|回|局|场)|之前|刚才|刚刚|昨[天晚]|以前|曾|原来|一直|本来|"
    r"从前|当时|前(?:一|几)轮|第[一二三四五六七八九十\d]+[轮次局期]"
)
COMING = _re(
    r"\b(?:for|in) the (?:coming|next|following|upcoming) \w+|\bnext (?:round|time|turn)\b"
)
WHEN = _re(  # a clause of no more than a time that is past
    rf"^(?:(?:in|on|at|during) )?(?:the |my |our )?(?:{LONG_AGO.pattern}|in (?:round|day|game) "
    rf"\d+)$"
)
LATER = _re(r"\b(?:tomorrow|the (?:day|round) after|in the future|later on)\b|明天|以后|将来")
WHO = _re(  # a subject of a clause
    r"\b(?:i(?:'\w+)?|we(?:'\w+)?|you(?:'\w+)?|he|she|they|it|it's|player[ _]?\d+|every(?:one|"
    r"body)|"
    r"others?|nobody|no one|some(?:one|body)|people|there|this|that|these|those|my|mine|our|"
    r"your|his|her|their|let's|lets|let us|each|all(?!-in)|both|most|many|half|what|which|who|"
    r"me)\b|"
    r"我|你|他|她|大家|咱|player|每个|谁|其他|别人|对方|所有"
)
_ACTS = """
    bid choose pick select go stay take set charge contribute give put say name order claim demand
    pledge promise invest play vote shoot aim target price sell hold stick stand settle opt submit
    move drop raise lower reduce increase cut enter use run head repeat accept reject withdraw pass
    donate offer come maintain ask_for chip_in commit call announce bring post quote return_to
    switch change fire leave cooperate defect eat write place spend start throw walk rush turn
    attend share request sit put_in skip treat_myself_to make_for make_my_way keep_my keep_to
    keep_it keep_at
"""
VERBS = _any(  # of a move, in the present
    _ACTS,
    "can_promise can_offer can_commit swear stay_with keep_on keep_\\w+ing declare state prefer "
    "want propose have_the guess_\\d+$ wager insist plan_on intend pay_in make_a begin match_it",
)
DOING = _any(  # the same, being done
    *map(_being_done, _ACTS.split()), "having_the keeping_everything keeping_all"
)
THREAT = _re(  # what another one is to do first
    rf"^(?!i\b|we\b)(?:{VERBS}|undercut|cheat|betray|attack|beat|outbid)\b.*\band (?:then "
    rf")?(?:i|we)\b"
)
_IDLE = """
    have get earn win lose need wait gain receive see let tell help trust watch hope remember
    explain know think consider believe survive love recover reach look reconsider calculate
    die starve observe warn afford show punish reward thank discuss save miss retaliate
"""
IDLE = _any(  # verbs after which a number is no move
    _IDLE,
    "make_(?!for_the|my_way|(?:a|an|my|the)_(?:\\w+_)?(?:bid|offer|contribution|choice)) "
    "ask_(?!for) like be_left "
    "run_out end_up remain_(?!at_home|home) try_to_(?:win|keep|get) follow_you",
)
IDLE_DOING = _any(  # what one can be doing besides
    *map(_being_done, _IDLE.replace("have", "").split()),
    "expecting assuming guessing trying wondering asking(?!_for) making(?!_(?:a|an|my)) "
    "talking facing carrying living dealing suffering struggling leading trailing suggesting "
    "proposing predicting anticipating betting feeling being something anything "
    "everything nothing",
)
ADVERBS = (  # each begins with the space before it
    r"(?:,? (?:just|now|also|then|again|only|still|too|once more|gladly|therefore|hereby|thus|"
    r"instead|"
    r"first|\w+ly|always|today|tonight|at least|all|both|each|be|indeed|this (?:time|round|week|"
    r"turn|day)|next (?:time|round|turn|week)|in round \d+|for (?:my part|now|sure)|"
    r"as (?:well|usual|promised|before|announced|agreed))){0,5},?"
)
TO = (
    rf"(?:'ll| will| shall|'m{ADVERBS} (?:going|about|ready|prepared|happy|set|planning|"
    rf"determined|willing|committed) to(?! the\b)|"
    rf" am{ADVERBS} (?:going|about|ready|prepared|happy|set|planning|determined|willing|"
    rf"committed) to(?! the\b)| am gonna|'m gonna|"
    r" gonna| (?:plan|intend|want|prefer|choose|decide|promise|pledge|vow|swear|agree|aim|mean) to|"
    r" wanna| can only|'d like to| would like to|'d rather| would rather|'d prefer to| would "
    r"prefer to|"
    r"(?:'ve| have)(?: now)? (?:decided|chosen|resolved|agreed)(?: to| on)?|"
    r"(?:'ve| have)(?: now)? (?:settled|agreed|landed) on|"
    r"(?:'ve| have) made up my mind to| decided (?:to|on))(?: (?:have|try|need|attempt|aim|want|"
    r"continue|go back) to| continue| start by)?"
)
NOUN = (
    r"(?:bid|number|choice|price|pick|contribution|offer|move|answer|guess|selection|decision|plan|"
    r"claim|proposal|demand|target|order|vote|figure|exit|aim|request|strategy|share|amount|ask|"
    r"preference|pledge|quote|dish|intention|call|investment|go-to|donation|submission|word)"
)
IS = (
    r"(?: is going to be|'s| is| will be| shall be| would be| remains?| stays?| will (?:stay|"
    r"remain)| (?:stands|sits|is set|comes) at|(?: (?:goes|is going|will go|moves|is moving|"
    r"rises|drops))? (?:up|down|back) to|:|"
    r" (?:at|to)(?= \$?\d)|"
    r" (?:this|next|for|in|at|today|tonight)\b[^,]{0,30}? (?:is|will be)| goes to| will go to| to "
    r"be)"
)
OWN = _re(
    rf"\bi{TO}{ADVERBS} (?!{IDLE}\b)|"
    r"\bi(?:'m| am|)(?: \w+ly)?(?= (?:not|never|won't|refuse|don't|do not)\b)|"
    rf"\bi(?:,[^,]+,)?{ADVERBS} (?={VERBS}\b)|"
    rf"\bi(?:'m| am){ADVERBS} (?=(?:(?!{IDLE_DOING}\b)\w+ing|at|in (?:for|with)|off to|all in|"
    rf"for|down for|set on|"
    r"back (?:to|at|on)|out|on board (?:with|for)|good for)\b)|"
    rf"\bmy (?:\w+ ){{0,2}}?{NOUN}{IS}(?! (?:that )?(?:we|both|all of us|each|every\w+)\b| by\b|"
    rf" that (?!i\b|i'))|\bmine(?: is| will be|'s)|"
    r"\b(?:count|put|mark|pencil|write|sign) me (?:in|down|up)(?: for| with| at| as)?|"
    rf"^give me(?= {NUMBER})|^now it(?:'s| is| will be)(?= {NUMBER})|"
    r"^(?:(?:so|then|now|this (?:time|round)|today|tonight),? )+it(?:'s| is|'ll be| will be) |"
    r"\b(?:count|rely|bank) on (?:me (?:for|to|with)|(?:my|an?) )|"
    r"\byou(?:'ll| will| can) (?:find|see) (?=me (?:at|in)\b)|"
    rf"\bmy (?:firm|shop|store|company|business|team|restaurant|side)(?:{TO}{ADVERBS}|(?= \w+s\b))|"
    rf"\b(?:you (?:can|may|will|'ll) )?(?:expect|get|see)"
    rf"(?= (?:(?:my|an?) {NOUN} (?:of|at) )?{NUMBER}[\w ]* from me\b)|"
    rf"\byou(?:'ll| can| will)? (?:\w+ )?(?:expect|get|see)(?= (?:{NUMBER}|nothing)[\w ]* from "
    rf"me\b)|"
    rf"^(?:so |ok(?:ay)?,? |well,? |then )?(?={DOING}\b(?!.*\b(?:is|was|would|seems|are|could|"
    rf"might|"
    r"can|helps|will|hurts?|leaves?|makes?|means?|gives|got|gets|did|does|brings?|has|had|costs?|"
    r"risks?|pays|works?|worked)\b))|"
    r"(?!)"
)
WISH = _re(rf"\bi(?:'d| would| must| have to| need to){ADVERBS} (?!{IDLE}\b)")
"""what is an announcement only if the text has no other"""
AFTER = _re(  # behind a move that comes first
    rf"\b(?:for|from) me\b|(?<!of )\bit is\b|\bit'll be\b|\bis (?:my|mine|what i)\b|\bthat's "
    rf"(?:my|me|what "
    rf"i)\b|\bis {NOUN}\b|^{NUMBER}[^,]* i (?:bid|choose|say|pick|give)|就是我"
)
IT_IS = _re(r"^it(?:'s| is|'ll be| will be)\b")
JOINT = _re(
    rf"\b(?:let's|lets|let us)\b|"
    rf"\bwe(?: all| both| each)?(?:'ll| will| shall| should| ought to| must| can| could|'d better|"
    rf" had better|'re going to|"
    rf" are going to| need to)?{ADVERBS} (?=(?:{VERBS}|{DOING})\b|agree on\b|agree to\b|keep "
    rf"(?:our|it|the|"
    rf"all)\b)|"
    rf"^every(?:one|body)(?= to the\b)|\b(?:(?:all|each|both)(?: one)? of us|every(?:one|body)|"
    rf"all|each)(?: should| must| ought to| will| "
    rf"shall| can)?{ADVERBS} (?=(?:{VERBS}s?|going|choosing|bidding|picking|giving|setting|goes|"
    r"chooses|does)\b)|"
    r"\b(?:both|all|each) of us at (?=\$?\d)|\bour (?:\w+ )?(?:number|price|prices|bid|bids|plan|"
    r"choice|target)(?: is| should be| will "
    r"be|s? "
    r"at|:)|\bjoin me (?:in|at|on)|\bwe(?:'re| are) all (?=choosing|bidding|picking|giving|going)|"
    r"我们|咱|大家|每个?人|所有人|人人|各自"
)
ELSE = _re(
    r"\b(?:(?:every(?:one|body)|all) else|you all|you both|you guys|all of you|each of you|others?|"
    r"(?:you|they|players?|them) (?:all|both|each)|every(?:one|body) (?:but|except) me|how (?:we|"
    r"it)|please(?! join))\b|请|你|其他人|别人|各位.*请"
)
REQUEST = _re(
    r"\bi(?:'d| would|'m| am)?(?: \w+)? (?:want|ask|asking|insist|demand|require|need|beg|urge|"
    r"invite|advise|suggest|"
    r"propose|recommend|like|love|prefer|expect|tell|call on|encourage|hope|wish|trust|let|warn|"
    r"remind|"
    r"implore)(?: that| for)? (?:all|you|your|every\w*|the|them|him|her|any\w*|some\w*|no\w*|each|"
    r"player|others?|most|both)\b"
)
PROPOSES = _re(
    r"\bi(?:'d| would)?(?: \w+)? (?:suggest|propose|recommend|vote|say|advise|want|ask|urge|"
    r"call on|invite)"
    r"(?: that| for)? (?:(?:all|each|both) of us|we|us|every(?:one|body)(?! (?:else|but|who|"
    r"except)))"
    r"\b|我(?:建议|提议|提案|想让|看)(?:我们|咱们|大家|每个?人|所有人)"
)
URGES = _re(r"\b(?:should|let's|let us|ought|propose|suggest)\b")
REPORT = _re(
    r"(?<!\bi )\b(?:said|says|told|tells|claims?|claimed|promised|announced|wrote|asks?|asked|"
    r"wants?|"
    r"thinks)\b|说|告诉"
)
_DECIDED = "decided|chosen|settled|agreed|made|resolved|landed|now"
PAST = _re(
    r"\bin (?:round|day|game|week) \d+,? i (?:bid|set|put|cut)\b|\b(?:i|we|they|you)'ve "
    rf"(?!{_DECIDED})\w+|\b(?:i|we|every(?:one|body)|all|each|both)(?: "
    r"\w+ly| all| both| each| also| just| only| then| "
    r"first| still| even)* (?:(?!need|proceed|exceed|bid|feed)\w+ed|was|were|had|has been|have "
    r"been|"
    rf"have (?!{_DECIDED}|the\b|to\b|not\b)\w+|'ve (?!{_DECIDED})\w+|"
    r"went|chose|gave|took|got|won|"
    r"lost|"
    r"made|kept|said|came|left|held|sold|stood|stuck|told|thought|ran|meant|paid|knew|did|began|"
    r"spoke|saw|felt|found|heard|brought|wrote|ate|shot|fell|rose|threw|bought)\b(?!')|"
    r"\b(?:my|our) (?:\w+ )*(?:was|were|has been|had been)\b"
)
SAME = _re(
    r" (?:that|it|this|so|what i'll do|what we'll do)(?: too| then| again| tonight| as well| "
    r"this (?:time|round))*$"
)
"""a clause that announces what the one before it spoke of"""
DECIDES = _re(r"\bi(?:'ve| have)?(?: now)? (?:decided|chosen|resolved|agreed)\b")
SPAN = _re(  # amounts that are no single one
    rf"\b(?:between|from) {NUMBER} (?:and|to) {NUMBER}|(?<!from ){NUMBER}\s*(?:to|or|-|–|"
    rf"~)\s*{NUMBER}|"
    r"之间|左右|上下|以上|以下|以内|至少|最多|不超过|不少于|不低于|不高于|\d\s*[到至~-]\s*\d|"
    r"\d\D{0,2}还是\D{0,2}\d"
)
EITHER = _re(r"\bor\b|或|(?:去|留|走|左边?|右边?|下面|便宜|贵)的?还是")
# Amounts that are no move: steps, bounds, ordinals, shares, other units and other quantities.
CHANGED = _re(
    r"\b((?:rais|lower|increas|reduc|chang|cut|drop|mov|switch|go|up|down|adjust|bring|lift)\w*"
    rf"(?: \w+){{0,3}}) from {NUMBER}(?= (?:up |down )?to\b)"
)
ASIDE = _re(
    rf"\b(?:by|another|an? (?:extra|additional)|extra|additional|add|adding|up|(?<!put "
    rf")(?<!putting )(?<!write )down|plus|minus) "
    rf"{NUMBER}|{NUMBER}(?: \w+)? (?:more|less|extra|higher|lower|fewer|additional|above|below|"
    rf"over|"
    rf"under)\b|(?:\b(?:at (?:least|most)|up to|(?:no |not )?(?:more|less|lower|higher|greater|"
    rf"fewer) "
    rf"than|over|under|above|below|around|about|roughly|approximately|near(?:ly)?|almost|close to|"
    rf"max(?:imum)?(?: of)?|min(?:imum)?(?: of)?|exceed(?:ing)?|beyond|within)|[<>~≈]) ?{NUMBER}|"
    rf"(?<![\w$.]){NUMBER}(?:st|nd|rd|th)\b|\d+ ?/ ?\d+(?: of {NUMBER})?|{NUMBER} ?(?:%|percent\b)|"
    rf"\b(?:rounds?|days?|turns?|games?|steps?|phases?|weeks?|periods?|episodes?|"
    rf"levels?|stages?|minutes?) (?:number )?{NUMBER}|{NUMBER} (?:(?:other|whole|remaining|dry|"
    rf"full|live|of the) )?(?:rounds?|days?|players?|"
    r"people|persons?|others|times|units?|firms?|bidders?|hp|health|lit(?:er|re)s?|gallons?|"
    r"met(?:er|re)s?|steps?|turns?|weeks?|months?|hours?|minutes?|residents?|opponents?|"
    r"friends?|votes?|wins?|customers?|seats?|in (?:total|profit|all)|of (?:us|you|them))\b|"
    rf"\b(?:costs?|profits?|payoffs?|margin|value|valuation|budget|balance|salary|total|sum|"
    rf"average|"
    rf"mean|target|score|endowment|capacity|health|hp|worth|left with|income|need|requirement|"
    rf"earn\w*|"
    rf"win|get|gets)(?: (?:of|is|at|at about|will be))? {NUMBER}|"
    rf"\b(?:keep(?:ing)?|sav(?:e|ing)|hold(?:ing)? back|retain(?:ing)?) {NUMBER}|\bfrom {NUMBER}|"
    rf"\b(?:your|his|her|their|its|player_\d+'s) (?:\w+ )?{NUMBER}|"
    r"(?:[多少](?:投|出|要|拿|给|选)?|[加减涨降升高低]|[涨降加减]价|提高|降低)了?\d+(?:\.\d+)?|"
    r"第\d+|\d+(?:\.\d+)?(?:轮|次|人|"
    r"名|家|天|%|分之|单位|周|期|"
    r"个?人|个?玩家|件)|\d+个?的?(?:三分之二|一半)|(?:成本|利润|收益|估值|余额|预算|平均数?|"
    r"目标|总共|一共|有)"
    r"(?:是|为|还有|还剩|了)?\d+(?:\.\d+)?|比(?:上次|之前|以前|上轮|上一轮).*"
)
TAIL = _re(  # where what is announced has been said
    r",? \b(?:which|leaving|so that(?!'s)|in order|instead of|rather than|than|as before|like|"
    r"because|"
    r"even|"
    r"considering|given (?=that|the|my|how)|based on|out of|(?<!half )(?<!all )of my|(?<!half "
    r")(?<!all )of the|against|until|till|for the (?:next|last)|"
    r"hoping|knowing|in case|since|that (?:way|leaves|would|should|is)|every time|"
    r"to (?:ensure|avoid|make|secure|win|beat|get|be|have|see|save|try|increase|maximi[sz]e|"
    r"outbid|match|keep|maintain|stay (?:alive|safe|in|below|under|within|ahead)|survive|help|"
    r"catch|"
    r"leave|allow|show|reach|gain|prevent|balance|conserve|preserve|guarantee|improve|give (?:my|"
    r"me|us|"
    r"you|every|all)))\b|这样|为了|而不是"
)
IDIOMS = _re(
    r"\bgo(?:ing|es)? (?:along|over|on|through|ahead|first|crazy|back on|after(?! player)|"
    r"against)\b|"
    r"\blet(?:ting)? (?!us\b)(?:\w+ ){1,2}?(?:go|stay|pass)\b|\b(?:all|that's|you're|you are|"
    r"is) right\b|"
    r"\bright(?: away| now| where| at| here| there|,)|(?<!exit )(?<!door )(?<!one )\bon (?:my|"
    r"the|your) (?:right|left)\b|"
    r"\b(?:are|is|be|have|has|was|were|get|people|players|rounds?|coins|tokens) left\b|\bleft "
    r"(?:me|us|"
    r"you|over|with|the room|to play)\b|\bstay(?:ing|s)? (?:calm|strong|safe|tuned|together|"
    r"ahead|alive|cool|positive|friends|focused|quiet|silent|healthy|close|away|"
    r"honest|the course|the same)\b|\bstay(?:ing|s)?(?= (?:below|under|within|above|out)\b)|"
    r"\brights\b|\bgo(?:ing|es)? (?:wrong|well|for it|broke)\b|"
    r"\bpass(?:ing|es)? (?:on|it|by)\b|来去|过去|去年|失去|下去|出去玩"
)
BARE = _re(
    rf"^(?:(?:the|a|just|only|simply|then|so|ok|okay|again|now|still|yes|me|same again|the same) )*"
    rf"(?:{NUMBER}|[a-z_]+)(?: (?:coins?|tokens?|golds?|dollars?|points?|exit|door|one|dish|again|"
    rf"now|"
    r"this (?:time|round)|please|for sure|then|too|as promised|final))*$|^\d+(?:\.\d+)?[个块元]?$"
)

# -- amounts in words ------------------------------------------------------------------------------
_GIVING = r"(?:giv|put|contribut|invest|donat|pledg|commit|throw|pay|offer|bid)\w*(?: in)? "
ALL = _re(
    rf"\b(?:all[- ]in|{_GIVING}"
    r"(?:everything|it all|all (?:of )?(?:my|it|i have|that i have))|everything (?:i have|i've "
    r"got)|(?:my|"
    r"the) (?:entire|whole|full|complete) (?:\w+ )?(?:endowment|amount|budget|stake|tokens|balance|"
    r"purse|wallet|stack)|all (?:of )?my (?:tokens|coins|money|endowment)|the maximum|as much as i "
    r"can|in full)\b|全部|全投|全都投|都投进|所有的?(?:代币|金币|钱|筹码)|倾囊"
)
HALF = _re(
    r"\bhalf (?:of )?(?:my|the|it|them|that|what i)\b|\bone half\b|\b50 ?%|\b50 percent|一半"
)
NONE = _re(
    rf"\b(?:{_GIVING}|(?:tak|ask|claim|demand|get)\w*(?: for)? )"
    r"nothing\b|\bnothing (?:from|for) me\b|"
    r"\bkeep(?:ing)? (?:everything|it all|all (?:of )?(?:my|it|the))|"
    r"\bno (?:tokens?|coins?)\b|\bnot a (?:single )?(?:token|coin)\b|"
    r"\b(?:contribute|give|put in) none\b|"
    rf"(?:not|n't|never)(?: be)?(?: \w+ly)? {_GIVING}"
    r"(?:anything|(?:any|a single) (?:tokens?|coins?|golds?|money))\b|一[个块分枚点](?:代币|"
    r"金币|钱|筹码)?(?:都|也)不|什么(?:都|也)不|一点(?:都|也)不|分文不"
)
_ONES = re.findall(
    r"\w+",
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
    "sixteen seventeen eighteen nineteen",
)
_TENS = re.findall(r"\w+", "twenty thirty forty fifty sixty seventy eighty ninety")
_IN_WORDS = _re(
    rf"\b(?:(?P<tens>{'|'.join(_TENS)})(?:[- ](?P<unit>{'|'.join(_ONES[1:10])}))?|"
    rf"(?P<one>{'|'.join(w for w in _ONES if w != 'one')})|(?:a|one) (?P<hundred>hundred))\b"
    r"(?!-thirds| thirds)"
)
_DIGITS = "零一二三四五六七八九"
_HAN = _re(
    r"(?<![第几分之零一二三四五六七八九十百])(?:(?P<tens>[二三四五六七八九]?)十(?P<unit>[一二三四五六七八九]?)|"
    r"(?P<hundred>一百)|(?P<one>[零两二三四五六七八九])(?=[个块元]|$|,))(?![分之百几])"
)


def in_digits(text: str) -> str:
    """Write the numbers up to a hundred that are in words in digits."""

    def english(match: re.Match[str]) -> str:
        if match["hundred"]:
            return "100"
        if match["one"]:
            return str(_ONES.index(match["one"].lower()))
        unit = _ONES.index(match["unit"].lower()) if match["unit"] else 0
        return str(20 + 10 * _TENS.index(match["tens"].lower()) + unit)

    def chinese(match: re.Match[str]) -> str:
        if match["hundred"]:
            return "100"
        if match["one"]:
            return str(_DIGITS.index(match["one"].replace("两", "二")))
        tens = _DIGITS.index(match["tens"]) if match["tens"] else 1
        return str(10 * tens + (_DIGITS.index(match["unit"]) if match["unit"] else 0))

    return _HAN.sub(chinese, _IN_WORDS.sub(english, text))


# -- words of choice -------------------------------------------------------------------------------
_FORMS = {
    "go": r"\bme at the \w+\b|(?:\bbe |^ ?)there\b|\b(?:choos\w+|pick\w*|prefer\w*) the bar\b|"
    r"\bgo(?:es)?\b(?! (?:with|for|home)\b)|\bgoing\b(?! (?:with|for|home)\b| to (?!the\b|"
    r"that\b))|\b(?:head|heading|off|be|way|over)(?: over| out)? (?:to|at) the \w+\b|"
    r"\battend(?:ing)?\b|"
    r"\bcom(?:e|"
    r"ing)\b(?! (?:to think|from|in|up))|\b(?:show|turn)(?:ing)? up\b|去(?!年|掉)|赴约",
    "stay": r"\bstay(?:s|ing)?\b(?! (?:with|at \d))|\b(?:remain|go|sit|be)(?:ing)?(?: at)? "
    r"home\b|\bhome (?:it is|for me)\b|"
    r"\bskip(?:ping)? (?:the \w+|it|tonight)\b|留|待在家|呆在家|在家|宅家",
    "left": r"\bleft\b|左",
    "right": r"\bright\b|右",
    "bottom": r"\bbottom\b|下[面方边]",
    "top": r"\btop\b|上[面方边](?!的)",
    "costly": r"\bcostly\b|\bexpensive\b|\bpric(?:e)?y\b|(?<!不)贵",
    "cheap": r"\bcheap(?:er)?\b|便宜",
    "accept": r"\baccept(?:s|ing)?\b|\bvote (?:yes|for it)\b|接受|赞成|同意",
    "reject": r"\breject(?:s|ing)?\b|\bvote (?:no|against it)\b|拒绝|反对",
    "cooperate": r"\bcooperat(?:e|es|ing|ion)\b|合作",
    "defect": r"\bdefect(?:s|ing|ion)?\b|背叛",
}
FORMS = {word: _re(form) for word, form in _FORMS.items()}
"""A word of choice in speech, by the word; others are looked for as they are."""
OPPOSED = _re(  # the verb of a move that is denied, so that the other of two is meant
    r"(?:not|n't|never|no longer)(?: to)?(?: be)?(?: \w+ly)? (?:go|stay|accept|reject|cooperat|"
    r"defect|attend|com)(?:e|ing)?\b|(?:不(?:会|想|打算|准备|要)?再?|拒绝)(?:去|留|接受|合作|背叛)"
)
DECLINED = _re(
    r"(?:not|n't|never|no longer)(?: be)?(?: \w+ly)? (?:bid|bidding|take part|participat\w+|join)\b"
    r"(?! \S*\d)|不(?:会|想|打算|准备|再)?(?:出价|竞价|参加)"
)
_HAN_ACTS = "选|出|投|去|走|定|点|报|给|拿|要|改|留|待|涨|降|卖|打|用|保持|维持|贡献|接受|合作"
HAN_ACT = _re(rf"(?:{_HAN_ACTS}|守)")
HAN_OWN = _re(
    r"我(?:(?![们你他她谁了过有的觉认猜估怀希知记赢赚,]|player|大[家部多]|所有|很多|别人|"
    r"对方).){0,10}?"
    rf"(?:{_HAN_ACTS}|说|押|呆|跑|往|射|瞄|取|捐|提|放|拒绝|背叛|退出|猜(?=\d+$))"
)
HAN_NOBODY = _re(  # a move without a subject
    rf"^(?:这次|这轮|这回|这一轮|本轮|本次|今晚|今天|那|就|先|还是|只好|只能)+(?:{_HAN_ACTS})"
)
HAN_MY = _re(
    r"我(?:这轮|这次|本轮|下轮|的|下一轮)*(?:数字|出价|报价|价格|选择|决定|要求|回答|号码|投入|"
    r"目标|定价|计划|答案|贡献|投资)"
    r"(?:是|为|会是|将是|将为|定为|定在|:|就是|仍是|还是)?"
)
HAN_DID = _re(rf"(?:{_HAN_ACTS}|赢|赚|说|射)(?:[了过]|的(?:是|\d))")
HAN_OTHERS = _re(r"你|他|她|player|别人|对方|其他")
HAN_ORDERS = _re(r"(?:要|让|请|叫|希望|求)(?:你|大家|他|她|player|所有|别人|其他|每)")
HAN_WILL = _re(r"会|要|将|打算|决定|准备|这轮|这次|本轮|今晚|今天|现在|改")
LETS = _re(r"^(?:then |so )?(?:let's|lets|let us)\b")
