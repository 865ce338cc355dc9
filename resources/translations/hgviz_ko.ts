<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE TS>
<TS version="2.1" language="ko_KR" sourcelanguage="en">
<context>
    <name>hgviz</name>
    <message>
        <source>{n:,} token</source>
        <translation>토큰 {n:,}개</translation>
    </message>
    <message>
        <source>{n:,} tokens</source>
        <translation>토큰 {n:,}개</translation>
    </message>
    <message>
        <source>tokens</source>
        <translation>토큰</translation>
    </message>
    <message>
        <source>token</source>
        <translation>토큰</translation>
    </message>
    <message>
        <source>{n:,} position</source>
        <translation>위치 {n:,}개</translation>
    </message>
    <message>
        <source>{n:,} positions</source>
        <translation>위치 {n:,}개</translation>
    </message>
    <message>
        <source>positions</source>
        <translation>위치</translation>
    </message>
    <message>
        <source>position</source>
        <translation>위치</translation>
    </message>
    <message>
        <source>{n:,} text</source>
        <translation>텍스트 {n:,}개</translation>
    </message>
    <message>
        <source>{n:,} texts</source>
        <translation>텍스트 {n:,}개</translation>
    </message>
    <message>
        <source>texts</source>
        <translation>텍스트</translation>
    </message>
    <message>
        <source>text</source>
        <translation>텍스트</translation>
    </message>
    <message>
        <source>{n:,} example</source>
        <translation>예제 {n:,}개</translation>
    </message>
    <message>
        <source>{n:,} examples</source>
        <translation>예제 {n:,}개</translation>
    </message>
    <message>
        <source>examples</source>
        <translation>예제</translation>
    </message>
    <message>
        <source>example</source>
        <translation>예제</translation>
    </message>
    <message>
        <source>{n:,} head</source>
        <translation>헤드 {n:,}개</translation>
    </message>
    <message>
        <source>{n:,} heads</source>
        <translation>헤드 {n:,}개</translation>
    </message>
    <message>
        <source>heads</source>
        <translation>헤드</translation>
    </message>
    <message>
        <source>head</source>
        <translation>헤드</translation>
    </message>
    <message>
        <source>{n:,} layer</source>
        <translation>레이어 {n:,}개</translation>
    </message>
    <message>
        <source>{n:,} layers</source>
        <translation>레이어 {n:,}개</translation>
    </message>
    <message>
        <source>layers</source>
        <translation>레이어</translation>
    </message>
    <message>
        <source>layer</source>
        <translation>레이어</translation>
    </message>
    <message>
        <source>{n:,} byte</source>
        <translation>바이트 {n:,}개</translation>
    </message>
    <message>
        <source>{n:,} bytes</source>
        <translation>바이트 {n:,}개</translation>
    </message>
    <message>
        <source>bytes</source>
        <translation>바이트</translation>
    </message>
    <message>
        <source>byte</source>
        <translation>바이트</translation>
    </message>
    <message>
        <source>{n:,} character</source>
        <translation>문자 {n:,}개</translation>
    </message>
    <message>
        <source>{n:,} characters</source>
        <translation>문자 {n:,}개</translation>
    </message>
    <message>
        <source>characters</source>
        <translation>문자</translation>
    </message>
    <message>
        <source>character</source>
        <translation>문자</translation>
    </message>
    <message>
        <source>{n:,} patch</source>
        <translation>패치 {n:,}개</translation>
    </message>
    <message>
        <source>{n:,} patches</source>
        <translation>패치 {n:,}개</translation>
    </message>
    <message>
        <source>patches</source>
        <translation>패치</translation>
    </message>
    <message>
        <source>patch</source>
        <translation>패치</translation>
    </message>
    <message>
        <source>{n:,} frame</source>
        <translation>프레임 {n:,}개</translation>
    </message>
    <message>
        <source>{n:,} frames</source>
        <translation>프레임 {n:,}개</translation>
    </message>
    <message>
        <source>frames</source>
        <translation>프레임</translation>
    </message>
    <message>
        <source>frame</source>
        <translation>프레임</translation>
    </message>
    <message>
        <source>{n:,} state</source>
        <translation>상태 {n:,}개</translation>
    </message>
    <message>
        <source>{n:,} states</source>
        <translation>상태 {n:,}개</translation>
    </message>
    <message>
        <source>states</source>
        <translation>상태</translation>
    </message>
    <message>
        <source>state</source>
        <translation>상태</translation>
    </message>
    <message>
        <source>{n:,} slot</source>
        <translation>슬롯 {n:,}개</translation>
    </message>
    <message>
        <source>{n:,} slots</source>
        <translation>슬롯 {n:,}개</translation>
    </message>
    <message>
        <source>slots</source>
        <translation>슬롯</translation>
    </message>
    <message>
        <source>slot</source>
        <translation>슬롯</translation>
    </message>
    <message>
        <source>{n:,} link</source>
        <translation>연결선 {n:,}개</translation>
    </message>
    <message>
        <source>{n:,} links</source>
        <translation>연결선 {n:,}개</translation>
    </message>
    <message>
        <source>links</source>
        <translation>연결선</translation>
    </message>
    <message>
        <source>link</source>
        <translation>연결선</translation>
    </message>
    <message>
        <source>{n:,} key</source>
        <translation>키 {n:,}개</translation>
    </message>
    <message>
        <source>{n:,} keys</source>
        <translation>키 {n:,}개</translation>
    </message>
    <message>
        <source>keys</source>
        <translation>키</translation>
    </message>
    <message>
        <source>key</source>
        <translation>키</translation>
    </message>
    <message>
        <source>{n:,} query</source>
        <translation>쿼리 {n:,}개</translation>
    </message>
    <message>
        <source>{n:,} queries</source>
        <translation>쿼리 {n:,}개</translation>
    </message>
    <message>
        <source>queries</source>
        <translation>쿼리</translation>
    </message>
    <message>
        <source>query</source>
        <translation>쿼리</translation>
    </message>
    <message>
        <source>{n:,} row</source>
        <translation>행 {n:,}개</translation>
    </message>
    <message>
        <source>{n:,} rows</source>
        <translation>행 {n:,}개</translation>
    </message>
    <message>
        <source>rows</source>
        <translation>행</translation>
    </message>
    <message>
        <source>row</source>
        <translation>행</translation>
    </message>
    <message>
        <source>{n:,} job</source>
        <translation>작업 {n:,}개</translation>
    </message>
    <message>
        <source>{n:,} jobs</source>
        <translation>작업 {n:,}개</translation>
    </message>
    <message>
        <source>jobs</source>
        <translation>작업</translation>
    </message>
    <message>
        <source>job</source>
        <translation>작업</translation>
    </message>
    <message>
        <source>{n:,} image</source>
        <translation>이미지 {n:,}개</translation>
    </message>
    <message>
        <source>{n:,} images</source>
        <translation>이미지 {n:,}개</translation>
    </message>
    <message>
        <source>images</source>
        <translation>이미지</translation>
    </message>
    <message>
        <source>image</source>
        <translation>이미지</translation>
    </message>
    <message>
        <source>{n:,} sound</source>
        <translation>소리 {n:,}개</translation>
    </message>
    <message>
        <source>{n:,} sounds</source>
        <translation>소리 {n:,}개</translation>
    </message>
    <message>
        <source>sounds</source>
        <translation>소리</translation>
    </message>
    <message>
        <source>sound</source>
        <translation>소리</translation>
    </message>
    <message>
        <source>{n:,} question</source>
        <translation>질문 {n:,}개</translation>
    </message>
    <message>
        <source>{n:,} questions</source>
        <translation>질문 {n:,}개</translation>
    </message>
    <message>
        <source>questions</source>
        <translation>질문</translation>
    </message>
    <message>
        <source>question</source>
        <translation>질문</translation>
    </message>
    <message>
        <source>{n:,} word</source>
        <translation>단어 {n:,}개</translation>
    </message>
    <message>
        <source>{n:,} words</source>
        <translation>단어 {n:,}개</translation>
    </message>
    <message>
        <source>words</source>
        <translation>단어</translation>
    </message>
    <message>
        <source>word</source>
        <translation>단어</translation>
    </message>
    <message>
        <source>{n:,} model</source>
        <translation>모델 {n:,}개</translation>
    </message>
    <message>
        <source>{n:,} models</source>
        <translation>모델 {n:,}개</translation>
    </message>
    <message>
        <source>models</source>
        <translation>모델</translation>
    </message>
    <message>
        <source>model</source>
        <translation>모델</translation>
    </message>
    <message>
        <source>{n:,} run</source>
        <translation>실행 {n:,}개</translation>
    </message>
    <message>
        <source>{n:,} runs</source>
        <translation>실행 {n:,}개</translation>
    </message>
    <message>
        <source>runs</source>
        <translation>실행</translation>
    </message>
    <message>
        <source>run</source>
        <translation>실행</translation>
    </message>
    <message>
        <source>{n:,} group</source>
        <translation>그룹 {n:,}개</translation>
    </message>
    <message>
        <source>{n:,} groups</source>
        <translation>그룹 {n:,}개</translation>
    </message>
    <message>
        <source>groups</source>
        <translation>그룹</translation>
    </message>
    <message>
        <source>group</source>
        <translation>그룹</translation>
    </message>
    <message>
        <source>{n:,} line</source>
        <translation>줄 {n:,}개</translation>
    </message>
    <message>
        <source>{n:,} lines</source>
        <translation>줄 {n:,}개</translation>
    </message>
    <message>
        <source>lines</source>
        <translation>줄</translation>
    </message>
    <message>
        <source>line</source>
        <translation>줄</translation>
    </message>
    <message>
        <source>{n:,} file</source>
        <translation>파일 {n:,}개</translation>
    </message>
    <message>
        <source>{n:,} files</source>
        <translation>파일 {n:,}개</translation>
    </message>
    <message>
        <source>files</source>
        <translation>파일</translation>
    </message>
    <message>
        <source>file</source>
        <translation>파일</translation>
    </message>
    <message>
        <source>{n:,} capture</source>
        <translation>캡처 {n:,}개</translation>
    </message>
    <message>
        <source>{n:,} captures</source>
        <translation>캡처 {n:,}개</translation>
    </message>
    <message>
        <source>captures</source>
        <translation>캡처</translation>
    </message>
    <message>
        <source>capture</source>
        <translation>캡처</translation>
    </message>
    <message>
        <source>{n:,} key group</source>
        <translation>키 그룹 {n:,}개</translation>
    </message>
    <message>
        <source>{n:,} key groups</source>
        <translation>키 그룹 {n:,}개</translation>
    </message>
    <message>
        <source>key groups</source>
        <translation>키 그룹</translation>
    </message>
    <message>
        <source>key group</source>
        <translation>키 그룹</translation>
    </message>
    <message>
        <source>{n:,} seed</source>
        <translation>시드 {n:,}개</translation>
    </message>
    <message>
        <source>{n:,} seeds</source>
        <translation>시드 {n:,}개</translation>
    </message>
    <message>
        <source>seeds</source>
        <translation>시드</translation>
    </message>
    <message>
        <source>seed</source>
        <translation>시드</translation>
    </message>
    <message>
        <source>{n:,} point</source>
        <translation>점 {n:,}개</translation>
    </message>
    <message>
        <source>{n:,} points</source>
        <translation>점 {n:,}개</translation>
    </message>
    <message>
        <source>points</source>
        <translation>%p</translation>
    </message>
    <message>
        <source>point</source>
        <translation>점</translation>
    </message>
    <message>
        <source>{n:,} label</source>
        <translation>레이블 {n:,}개</translation>
    </message>
    <message>
        <source>{n:,} labels</source>
        <translation>레이블 {n:,}개</translation>
    </message>
    <message>
        <source>labels</source>
        <translation>레이블</translation>
    </message>
    <message>
        <source>label</source>
        <translation>레이블</translation>
    </message>
    <message>
        <source>{n:,} class</source>
        <translation>클래스 {n:,}개</translation>
    </message>
    <message>
        <source>{n:,} classes</source>
        <translation>클래스 {n:,}개</translation>
    </message>
    <message>
        <source>classes</source>
        <translation>클래스</translation>
    </message>
    <message>
        <source>class</source>
        <translation>클래스</translation>
    </message>
    <message>
        <source>{n:,} page</source>
        <translation>페이지 {n:,}개</translation>
    </message>
    <message>
        <source>{n:,} pages</source>
        <translation>페이지 {n:,}개</translation>
    </message>
    <message>
        <source>pages</source>
        <translation>페이지</translation>
    </message>
    <message>
        <source>page</source>
        <translation>페이지</translation>
    </message>
    <message>
        <source>{n:,} minute</source>
        <translation>분 {n:,}개</translation>
    </message>
    <message>
        <source>{n:,} minutes</source>
        <translation>분 {n:,}개</translation>
    </message>
    <message>
        <source>minutes</source>
        <translation>분</translation>
    </message>
    <message>
        <source>minute</source>
        <translation>분</translation>
    </message>
    <message>
        <source>{n:,} second</source>
        <translation>초 {n:,}개</translation>
    </message>
    <message>
        <source>{n:,} seconds</source>
        <translation>초 {n:,}개</translation>
    </message>
    <message>
        <source>seconds</source>
        <translation>초</translation>
    </message>
    <message>
        <source>second</source>
        <translation>초</translation>
    </message>
    <message>
        <source>{n:,} sample</source>
        <translation>표본 {n:,}개</translation>
    </message>
    <message>
        <source>{n:,} samples</source>
        <translation>표본 {n:,}개</translation>
    </message>
    <message>
        <source>samples</source>
        <translation>표본</translation>
    </message>
    <message>
        <source>sample</source>
        <translation>표본</translation>
    </message>
    <message>
        <source>{n:,} region</source>
        <translation>영역 {n:,}개</translation>
    </message>
    <message>
        <source>{n:,} regions</source>
        <translation>영역 {n:,}개</translation>
    </message>
    <message>
        <source>regions</source>
        <translation>영역</translation>
    </message>
    <message>
        <source>region</source>
        <translation>영역</translation>
    </message>
    <message>
        <source>{n:,} segment</source>
        <translation>세그먼트 {n:,}개</translation>
    </message>
    <message>
        <source>{n:,} segments</source>
        <translation>세그먼트 {n:,}개</translation>
    </message>
    <message>
        <source>segments</source>
        <translation>세그먼트</translation>
    </message>
    <message>
        <source>segment</source>
        <translation>세그먼트</translation>
    </message>
    <message>
        <source>Language: {language}</source>
        <translation>언어: {language}</translation>
    </message>
    <message>
        <source>English</source>
        <translation>English</translation>
    </message>
    <message>
        <source>한국어</source>
        <translation>한국어</translation>
    </message>
    <message>
        <source>Text {n:,}: {query} puts {share} of its weight on {key}</source>
        <translation>텍스트 {n:,}: {query}의 가중치 가운데 {share}이(가) {key}에 있습니다</translation>
    </message>
    <message>
        <source>{token} adds {amount} to the output at {output} (product of all layers).</source>
        <translation>{token}: {output}의 출력에 {amount}을(를) 더합니다(모든 레이어의 곱).</translation>
    </message>
    <message>
        <source>{token} subtracts {amount} from the output at {output} (product of all layers).</source>
        <translation>{token}: {output}의 출력에서 {amount}을(를) 뺍니다(모든 레이어의 곱).</translation>
    </message>
    <message>
        <source>{share} of the output at {output} comes from {token}.</source>
        <translation>{output}의 출력 중 {share}: {token}에서 옵니다.</translation>
    </message>
    <message>
        <source>{share} of the output at {output} comes from {token}, {away} back.</source>
        <translation>{output}의 출력 중 {share}: {token}에서 옵니다({away} 이전).</translation>
    </message>
    <message>
        <source>{share} of the output at {output} comes from {token}, {away} ahead.</source>
        <translation>{output}의 출력 중 {share}: {token}에서 옵니다({away} 이후).</translation>
    </message>
    <message>
        <source>{share} of the output at {output} comes from {token}, itself.</source>
        <translation>{output}의 출력 중 {share}: {token}에서 옵니다(자기 자신).</translation>
    </message>
    <message>
        <source>{source} goes to {name} and {many} more</source>
        <translation>{source} → {name} 외 {many}개</translation>
    </message>
    <message>
        <source>{source} goes to {name}</source>
        <translation>{source} → {name}</translation>
    </message>
    <message>
        <source>{side}, head {head}: {value}. Measured on {rows:,} of {of:,} rows.</source>
        <translation>{side}, 헤드 {head}: {value}. 행 {of:,}개 중 {rows:,}개에서 측정.</translation>
    </message>
    <message>
        <source>Text in</source>
        <translation>텍스트 입력</translation>
    </message>
    <message>
        <source>Image in</source>
        <translation>이미지 입력</translation>
    </message>
    <message>
        <source>Sound in</source>
        <translation>소리 입력</translation>
    </message>
    <message>
        <source>Source in</source>
        <translation>원문 입력</translation>
    </message>
    <message>
        <source>{share} went to {level}, from {far:,.0f}</source>
        <translation>{level}에서 {share}, {far:,.0f} 이전</translation>
    </message>
    <message>
        <source>{share} stayed at {level}, from {far:,.0f}</source>
        <translation>{level}에 {share} 유지, {far:,.0f} 이전</translation>
    </message>
    <message>
        <source>{share} went to {level}, from {far:,.0f} {unit}s back on average</source>
        <translation>{level}에서 {share}, 평균 {unit} {far:,.0f}개 이전</translation>
    </message>
    <message>
        <source>{share} stayed at {level}, from {far:,.0f} {unit}s back on average</source>
        <translation>{level}에 {share} 유지, 평균 {unit} {far:,.0f}개 이전</translation>
    </message>
    <message>
        <source>One model on one text.</source>
        <translation>모델 하나, 텍스트 하나.</translation>
    </message>
    <message>
        <source>One model on two texts.</source>
        <translation>한 모델, 두 텍스트.</translation>
    </message>
    <message>
        <source>Two models on one text: heads with the same number are not related.</source>
        <translation>모델 둘, 텍스트 하나: 번호가 같은 헤드끼리 관련이 없습니다.</translation>
    </message>
    <message>
        <source>Two models on two texts: heads with the same number are not related.</source>
        <translation>모델 둘, 텍스트 둘: 번호가 같은 헤드끼리 관련이 없습니다.</translation>
    </message>
    <message>
        <source>Choose a labelled table of texts</source>
        <translation>레이블이 있는 텍스트 표 선택</translation>
    </message>
    <message>
        <source>Choose a labelled table of images</source>
        <translation>레이블이 있는 이미지 표 선택</translation>
    </message>
    <message>
        <source>Choose a labelled table of sounds</source>
        <translation>레이블이 있는 소리 표 선택</translation>
    </message>
    <message>
        <source>{who}: {links} with {share} of the weight</source>
        <translation>{who}: {links}, 가중치의 {share}</translation>
    </message>
    <message>
        <source>{who}: {links} with {share} of the magnitude</source>
        <translation>{who}: {links}, 크기의 {share}</translation>
    </message>
    <message>
        <source>switching all heads on</source>
        <translation>모든 헤드 켜기</translation>
    </message>
    <message>
        <source>previous token</source>
        <translation>이전 토큰</translation>
    </message>
    <message>
        <source>Partly: previous token</source>
        <translation>부분적: 이전 토큰</translation>
    </message>
    <message>
        <source>previous position</source>
        <translation>이전 위치</translation>
    </message>
    <message>
        <source>Partly: previous position</source>
        <translation>부분적: 이전 위치</translation>
    </message>
    <message>
        <source>previous group</source>
        <translation>이전 그룹</translation>
    </message>
    <message>
        <source>Partly: previous group</source>
        <translation>부분적: 이전 그룹</translation>
    </message>
    <message>
        <source>previous frame</source>
        <translation>이전 프레임</translation>
    </message>
    <message>
        <source>Partly: previous frame</source>
        <translation>부분적: 이전 프레임</translation>
    </message>
    <message>
        <source>previous state</source>
        <translation>이전 상태</translation>
    </message>
    <message>
        <source>Partly: previous state</source>
        <translation>부분적: 이전 상태</translation>
    </message>
    <message>
        <source>previous slot</source>
        <translation>이전 슬롯</translation>
    </message>
    <message>
        <source>Partly: previous slot</source>
        <translation>부분적: 이전 슬롯</translation>
    </message>
    <message>
        <source>two tokens back</source>
        <translation>토큰 두 개 전</translation>
    </message>
    <message>
        <source>Partly: two tokens back</source>
        <translation>부분적: 토큰 두 개 전</translation>
    </message>
    <message>
        <source>two positions back</source>
        <translation>위치 두 개 전</translation>
    </message>
    <message>
        <source>Partly: two positions back</source>
        <translation>부분적: 위치 두 개 전</translation>
    </message>
    <message>
        <source>two groups back</source>
        <translation>그룹 두 개 전</translation>
    </message>
    <message>
        <source>Partly: two groups back</source>
        <translation>부분적: 그룹 두 개 전</translation>
    </message>
    <message>
        <source>two frames back</source>
        <translation>프레임 두 개 전</translation>
    </message>
    <message>
        <source>Partly: two frames back</source>
        <translation>부분적: 프레임 두 개 전</translation>
    </message>
    <message>
        <source>two states back</source>
        <translation>상태 두 개 전</translation>
    </message>
    <message>
        <source>Partly: two states back</source>
        <translation>부분적: 상태 두 개 전</translation>
    </message>
    <message>
        <source>two slots back</source>
        <translation>슬롯 두 개 전</translation>
    </message>
    <message>
        <source>Partly: two slots back</source>
        <translation>부분적: 슬롯 두 개 전</translation>
    </message>
    <message>
        <source>three tokens back</source>
        <translation>토큰 세 개 전</translation>
    </message>
    <message>
        <source>Partly: three tokens back</source>
        <translation>부분적: 토큰 세 개 전</translation>
    </message>
    <message>
        <source>three positions back</source>
        <translation>위치 세 개 전</translation>
    </message>
    <message>
        <source>Partly: three positions back</source>
        <translation>부분적: 위치 세 개 전</translation>
    </message>
    <message>
        <source>three groups back</source>
        <translation>그룹 세 개 전</translation>
    </message>
    <message>
        <source>Partly: three groups back</source>
        <translation>부분적: 그룹 세 개 전</translation>
    </message>
    <message>
        <source>three frames back</source>
        <translation>프레임 세 개 전</translation>
    </message>
    <message>
        <source>Partly: three frames back</source>
        <translation>부분적: 프레임 세 개 전</translation>
    </message>
    <message>
        <source>three states back</source>
        <translation>상태 세 개 전</translation>
    </message>
    <message>
        <source>Partly: three states back</source>
        <translation>부분적: 상태 세 개 전</translation>
    </message>
    <message>
        <source>three slots back</source>
        <translation>슬롯 세 개 전</translation>
    </message>
    <message>
        <source>Partly: three slots back</source>
        <translation>부분적: 슬롯 세 개 전</translation>
    </message>
    <message>
        <source>local</source>
        <translation>국소</translation>
    </message>
    <message>
        <source>Partly: local</source>
        <translation>부분적: 국소</translation>
    </message>
    <message>
        <source>current token</source>
        <translation>현재 토큰</translation>
    </message>
    <message>
        <source>Partly: current token</source>
        <translation>부분적: 현재 토큰</translation>
    </message>
    <message>
        <source>current position</source>
        <translation>현재 위치</translation>
    </message>
    <message>
        <source>Partly: current position</source>
        <translation>부분적: 현재 위치</translation>
    </message>
    <message>
        <source>current group</source>
        <translation>현재 그룹</translation>
    </message>
    <message>
        <source>Partly: current group</source>
        <translation>부분적: 현재 그룹</translation>
    </message>
    <message>
        <source>current frame</source>
        <translation>현재 프레임</translation>
    </message>
    <message>
        <source>Partly: current frame</source>
        <translation>부분적: 현재 프레임</translation>
    </message>
    <message>
        <source>current state</source>
        <translation>현재 상태</translation>
    </message>
    <message>
        <source>Partly: current state</source>
        <translation>부분적: 현재 상태</translation>
    </message>
    <message>
        <source>current slot</source>
        <translation>현재 슬롯</translation>
    </message>
    <message>
        <source>Partly: current slot</source>
        <translation>부분적: 현재 슬롯</translation>
    </message>
    <message>
        <source>next token</source>
        <translation>다음 토큰</translation>
    </message>
    <message>
        <source>Partly: next token</source>
        <translation>부분적: 다음 토큰</translation>
    </message>
    <message>
        <source>next position</source>
        <translation>다음 위치</translation>
    </message>
    <message>
        <source>Partly: next position</source>
        <translation>부분적: 다음 위치</translation>
    </message>
    <message>
        <source>next group</source>
        <translation>다음 그룹</translation>
    </message>
    <message>
        <source>Partly: next group</source>
        <translation>부분적: 다음 그룹</translation>
    </message>
    <message>
        <source>next frame</source>
        <translation>다음 프레임</translation>
    </message>
    <message>
        <source>Partly: next frame</source>
        <translation>부분적: 다음 프레임</translation>
    </message>
    <message>
        <source>next state</source>
        <translation>다음 상태</translation>
    </message>
    <message>
        <source>Partly: next state</source>
        <translation>부분적: 다음 상태</translation>
    </message>
    <message>
        <source>next slot</source>
        <translation>다음 슬롯</translation>
    </message>
    <message>
        <source>Partly: next slot</source>
        <translation>부분적: 다음 슬롯</translation>
    </message>
    <message>
        <source>local, both sides</source>
        <translation>국소(양쪽)</translation>
    </message>
    <message>
        <source>Partly: local, both sides</source>
        <translation>부분적: 국소(양쪽)</translation>
    </message>
    <message>
        <source>last position in group</source>
        <translation>그룹의 마지막 위치</translation>
    </message>
    <message>
        <source>Partly: last position in group</source>
        <translation>부분적: 그룹의 마지막 위치</translation>
    </message>
    <message>
        <source>first position in group</source>
        <translation>그룹의 첫 위치</translation>
    </message>
    <message>
        <source>Partly: first position in group</source>
        <translation>부분적: 그룹의 첫 위치</translation>
    </message>
    <message>
        <source>first token</source>
        <translation>첫 토큰</translation>
    </message>
    <message>
        <source>Partly: first token</source>
        <translation>부분적: 첫 토큰</translation>
    </message>
    <message>
        <source>first position</source>
        <translation>첫 위치</translation>
    </message>
    <message>
        <source>Partly: first position</source>
        <translation>부분적: 첫 위치</translation>
    </message>
    <message>
        <source>first group</source>
        <translation>첫 그룹</translation>
    </message>
    <message>
        <source>Partly: first group</source>
        <translation>부분적: 첫 그룹</translation>
    </message>
    <message>
        <source>first frame</source>
        <translation>첫 프레임</translation>
    </message>
    <message>
        <source>Partly: first frame</source>
        <translation>부분적: 첫 프레임</translation>
    </message>
    <message>
        <source>first state</source>
        <translation>첫 상태</translation>
    </message>
    <message>
        <source>Partly: first state</source>
        <translation>부분적: 첫 상태</translation>
    </message>
    <message>
        <source>first slot</source>
        <translation>첫 슬롯</translation>
    </message>
    <message>
        <source>Partly: first slot</source>
        <translation>부분적: 첫 슬롯</translation>
    </message>
    <message>
        <source>last token</source>
        <translation>마지막 토큰</translation>
    </message>
    <message>
        <source>Partly: last token</source>
        <translation>부분적: 마지막 토큰</translation>
    </message>
    <message>
        <source>last position</source>
        <translation>마지막 위치</translation>
    </message>
    <message>
        <source>Partly: last position</source>
        <translation>부분적: 마지막 위치</translation>
    </message>
    <message>
        <source>last group</source>
        <translation>마지막 그룹</translation>
    </message>
    <message>
        <source>Partly: last group</source>
        <translation>부분적: 마지막 그룹</translation>
    </message>
    <message>
        <source>last frame</source>
        <translation>마지막 프레임</translation>
    </message>
    <message>
        <source>Partly: last frame</source>
        <translation>부분적: 마지막 프레임</translation>
    </message>
    <message>
        <source>last state</source>
        <translation>마지막 상태</translation>
    </message>
    <message>
        <source>Partly: last state</source>
        <translation>부분적: 마지막 상태</translation>
    </message>
    <message>
        <source>last slot</source>
        <translation>마지막 슬롯</translation>
    </message>
    <message>
        <source>Partly: last slot</source>
        <translation>부분적: 마지막 슬롯</translation>
    </message>
    <message>
        <source>special tokens at the start</source>
        <translation>처음의 특수 토큰</translation>
    </message>
    <message>
        <source>Partly: special tokens at the start</source>
        <translation>부분적: 처음의 특수 토큰</translation>
    </message>
    <message>
        <source>separators</source>
        <translation>구분 토큰</translation>
    </message>
    <message>
        <source>Partly: separators</source>
        <translation>부분적: 구분 토큰</translation>
    </message>
    <message>
        <source>special tokens</source>
        <translation>특수 토큰</translation>
    </message>
    <message>
        <source>Partly: special tokens</source>
        <translation>부분적: 특수 토큰</translation>
    </message>
    <message>
        <source>diagonal</source>
        <translation>대각선</translation>
    </message>
    <message>
        <source>Partly: diagonal</source>
        <translation>부분적: 대각선</translation>
    </message>
    <message>
        <source>same token</source>
        <translation>같은 토큰</translation>
    </message>
    <message>
        <source>Partly: same token</source>
        <translation>부분적: 같은 토큰</translation>
    </message>
    <message>
        <source>same position</source>
        <translation>같은 위치</translation>
    </message>
    <message>
        <source>Partly: same position</source>
        <translation>부분적: 같은 위치</translation>
    </message>
    <message>
        <source>same group</source>
        <translation>같은 그룹</translation>
    </message>
    <message>
        <source>Partly: same group</source>
        <translation>부분적: 같은 그룹</translation>
    </message>
    <message>
        <source>same frame</source>
        <translation>같은 프레임</translation>
    </message>
    <message>
        <source>Partly: same frame</source>
        <translation>부분적: 같은 프레임</translation>
    </message>
    <message>
        <source>same state</source>
        <translation>같은 상태</translation>
    </message>
    <message>
        <source>Partly: same state</source>
        <translation>부분적: 같은 상태</translation>
    </message>
    <message>
        <source>same slot</source>
        <translation>같은 슬롯</translation>
    </message>
    <message>
        <source>Partly: same slot</source>
        <translation>부분적: 같은 슬롯</translation>
    </message>
    <message>
        <source>other text</source>
        <translation>다른 텍스트</translation>
    </message>
    <message>
        <source>Partly: other text</source>
        <translation>부분적: 다른 텍스트</translation>
    </message>
    <message>
        <source>start of the word</source>
        <translation>단어의 시작</translation>
    </message>
    <message>
        <source>Partly: start of the word</source>
        <translation>부분적: 단어의 시작</translation>
    </message>
    <message>
        <source>current word</source>
        <translation>현재 단어</translation>
    </message>
    <message>
        <source>Partly: current word</source>
        <translation>부분적: 현재 단어</translation>
    </message>
    <message>
        <source>previous word</source>
        <translation>이전 단어</translation>
    </message>
    <message>
        <source>Partly: previous word</source>
        <translation>부분적: 이전 단어</translation>
    </message>
    <message>
        <source>previous space</source>
        <translation>이전 공백</translation>
    </message>
    <message>
        <source>Partly: previous space</source>
        <translation>부분적: 이전 공백</translation>
    </message>
    <message>
        <source>previous punctuation</source>
        <translation>이전 문장 부호</translation>
    </message>
    <message>
        <source>Partly: previous punctuation</source>
        <translation>부분적: 이전 문장 부호</translation>
    </message>
    <message>
        <source>start of the sentence</source>
        <translation>문장의 시작</translation>
    </message>
    <message>
        <source>Partly: start of the sentence</source>
        <translation>부분적: 문장의 시작</translation>
    </message>
    <message>
        <source>capital letters</source>
        <translation>대문자</translation>
    </message>
    <message>
        <source>Partly: capital letters</source>
        <translation>부분적: 대문자</translation>
    </message>
    <message>
        <source>punctuation</source>
        <translation>문장 부호</translation>
    </message>
    <message>
        <source>Partly: punctuation</source>
        <translation>부분적: 문장 부호</translation>
    </message>
    <message>
        <source>spaces</source>
        <translation>공백</translation>
    </message>
    <message>
        <source>Partly: spaces</source>
        <translation>부분적: 공백</translation>
    </message>
    <message>
        <source>word starts</source>
        <translation>단어 시작들</translation>
    </message>
    <message>
        <source>Partly: word starts</source>
        <translation>부분적: 단어 시작들</translation>
    </message>
    <message>
        <source>digits</source>
        <translation>숫자</translation>
    </message>
    <message>
        <source>Partly: digits</source>
        <translation>부분적: 숫자</translation>
    </message>
    <message>
        <source>vowels</source>
        <translation>모음</translation>
    </message>
    <message>
        <source>Partly: vowels</source>
        <translation>부분적: 모음</translation>
    </message>
    <message>
        <source>previous same token</source>
        <translation>이전의 같은 토큰</translation>
    </message>
    <message>
        <source>Partly: previous same token</source>
        <translation>부분적: 이전의 같은 토큰</translation>
    </message>
    <message>
        <source>previous same position</source>
        <translation>이전의 같은 위치</translation>
    </message>
    <message>
        <source>Partly: previous same position</source>
        <translation>부분적: 이전의 같은 위치</translation>
    </message>
    <message>
        <source>previous same group</source>
        <translation>이전의 같은 그룹</translation>
    </message>
    <message>
        <source>Partly: previous same group</source>
        <translation>부분적: 이전의 같은 그룹</translation>
    </message>
    <message>
        <source>previous same frame</source>
        <translation>이전의 같은 프레임</translation>
    </message>
    <message>
        <source>Partly: previous same frame</source>
        <translation>부분적: 이전의 같은 프레임</translation>
    </message>
    <message>
        <source>previous same state</source>
        <translation>이전의 같은 상태</translation>
    </message>
    <message>
        <source>Partly: previous same state</source>
        <translation>부분적: 이전의 같은 상태</translation>
    </message>
    <message>
        <source>previous same slot</source>
        <translation>이전의 같은 슬롯</translation>
    </message>
    <message>
        <source>Partly: previous same slot</source>
        <translation>부분적: 이전의 같은 슬롯</translation>
    </message>
    <message>
        <source>duplicate token</source>
        <translation>중복 토큰</translation>
    </message>
    <message>
        <source>Partly: duplicate token</source>
        <translation>부분적: 중복 토큰</translation>
    </message>
    <message>
        <source>duplicate position</source>
        <translation>중복 위치</translation>
    </message>
    <message>
        <source>Partly: duplicate position</source>
        <translation>부분적: 중복 위치</translation>
    </message>
    <message>
        <source>duplicate group</source>
        <translation>중복 그룹</translation>
    </message>
    <message>
        <source>Partly: duplicate group</source>
        <translation>부분적: 중복 그룹</translation>
    </message>
    <message>
        <source>duplicate frame</source>
        <translation>중복 프레임</translation>
    </message>
    <message>
        <source>Partly: duplicate frame</source>
        <translation>부분적: 중복 프레임</translation>
    </message>
    <message>
        <source>duplicate state</source>
        <translation>중복 상태</translation>
    </message>
    <message>
        <source>Partly: duplicate state</source>
        <translation>부분적: 중복 상태</translation>
    </message>
    <message>
        <source>duplicate slot</source>
        <translation>중복 슬롯</translation>
    </message>
    <message>
        <source>Partly: duplicate slot</source>
        <translation>부분적: 중복 슬롯</translation>
    </message>
    <message>
        <source>same token elsewhere</source>
        <translation>다른 곳의 같은 토큰</translation>
    </message>
    <message>
        <source>Partly: same token elsewhere</source>
        <translation>부분적: 다른 곳의 같은 토큰</translation>
    </message>
    <message>
        <source>same position elsewhere</source>
        <translation>다른 곳의 같은 위치</translation>
    </message>
    <message>
        <source>Partly: same position elsewhere</source>
        <translation>부분적: 다른 곳의 같은 위치</translation>
    </message>
    <message>
        <source>same group elsewhere</source>
        <translation>다른 곳의 같은 그룹</translation>
    </message>
    <message>
        <source>Partly: same group elsewhere</source>
        <translation>부분적: 다른 곳의 같은 그룹</translation>
    </message>
    <message>
        <source>same frame elsewhere</source>
        <translation>다른 곳의 같은 프레임</translation>
    </message>
    <message>
        <source>Partly: same frame elsewhere</source>
        <translation>부분적: 다른 곳의 같은 프레임</translation>
    </message>
    <message>
        <source>same state elsewhere</source>
        <translation>다른 곳의 같은 상태</translation>
    </message>
    <message>
        <source>Partly: same state elsewhere</source>
        <translation>부분적: 다른 곳의 같은 상태</translation>
    </message>
    <message>
        <source>same slot elsewhere</source>
        <translation>다른 곳의 같은 슬롯</translation>
    </message>
    <message>
        <source>Partly: same slot elsewhere</source>
        <translation>부분적: 다른 곳의 같은 슬롯</translation>
    </message>
    <message>
        <source>duplicate word</source>
        <translation>중복 단어</translation>
    </message>
    <message>
        <source>Partly: duplicate word</source>
        <translation>부분적: 중복 단어</translation>
    </message>
    <message>
        <source>rarest word</source>
        <translation>가장 드문 단어</translation>
    </message>
    <message>
        <source>Partly: rarest word</source>
        <translation>부분적: 가장 드문 단어</translation>
    </message>
    <message>
        <source>induction, one token</source>
        <translation>인덕션, 토큰 하나</translation>
    </message>
    <message>
        <source>Partly: induction, one token</source>
        <translation>부분적: 인덕션, 토큰 하나</translation>
    </message>
    <message>
        <source>induction, one position</source>
        <translation>인덕션, 위치 하나</translation>
    </message>
    <message>
        <source>Partly: induction, one position</source>
        <translation>부분적: 인덕션, 위치 하나</translation>
    </message>
    <message>
        <source>induction, one group</source>
        <translation>인덕션, 그룹 하나</translation>
    </message>
    <message>
        <source>Partly: induction, one group</source>
        <translation>부분적: 인덕션, 그룹 하나</translation>
    </message>
    <message>
        <source>induction, one frame</source>
        <translation>인덕션, 프레임 하나</translation>
    </message>
    <message>
        <source>Partly: induction, one frame</source>
        <translation>부분적: 인덕션, 프레임 하나</translation>
    </message>
    <message>
        <source>induction, one state</source>
        <translation>인덕션, 상태 하나</translation>
    </message>
    <message>
        <source>Partly: induction, one state</source>
        <translation>부분적: 인덕션, 상태 하나</translation>
    </message>
    <message>
        <source>induction, one slot</source>
        <translation>인덕션, 슬롯 하나</translation>
    </message>
    <message>
        <source>Partly: induction, one slot</source>
        <translation>부분적: 인덕션, 슬롯 하나</translation>
    </message>
    <message>
        <source>induction, two tokens</source>
        <translation>인덕션, 토큰 둘</translation>
    </message>
    <message>
        <source>Partly: induction, two tokens</source>
        <translation>부분적: 인덕션, 토큰 둘</translation>
    </message>
    <message>
        <source>induction, two positions</source>
        <translation>인덕션, 위치 둘</translation>
    </message>
    <message>
        <source>Partly: induction, two positions</source>
        <translation>부분적: 인덕션, 위치 둘</translation>
    </message>
    <message>
        <source>induction, two groups</source>
        <translation>인덕션, 그룹 둘</translation>
    </message>
    <message>
        <source>Partly: induction, two groups</source>
        <translation>부분적: 인덕션, 그룹 둘</translation>
    </message>
    <message>
        <source>induction, two frames</source>
        <translation>인덕션, 프레임 둘</translation>
    </message>
    <message>
        <source>Partly: induction, two frames</source>
        <translation>부분적: 인덕션, 프레임 둘</translation>
    </message>
    <message>
        <source>induction, two states</source>
        <translation>인덕션, 상태 둘</translation>
    </message>
    <message>
        <source>Partly: induction, two states</source>
        <translation>부분적: 인덕션, 상태 둘</translation>
    </message>
    <message>
        <source>induction, two slots</source>
        <translation>인덕션, 슬롯 둘</translation>
    </message>
    <message>
        <source>Partly: induction, two slots</source>
        <translation>부분적: 인덕션, 슬롯 둘</translation>
    </message>
    <message>
        <source>induction, three tokens</source>
        <translation>인덕션, 토큰 셋</translation>
    </message>
    <message>
        <source>Partly: induction, three tokens</source>
        <translation>부분적: 인덕션, 토큰 셋</translation>
    </message>
    <message>
        <source>induction, three positions</source>
        <translation>인덕션, 위치 셋</translation>
    </message>
    <message>
        <source>Partly: induction, three positions</source>
        <translation>부분적: 인덕션, 위치 셋</translation>
    </message>
    <message>
        <source>induction, three groups</source>
        <translation>인덕션, 그룹 셋</translation>
    </message>
    <message>
        <source>Partly: induction, three groups</source>
        <translation>부분적: 인덕션, 그룹 셋</translation>
    </message>
    <message>
        <source>induction, three frames</source>
        <translation>인덕션, 프레임 셋</translation>
    </message>
    <message>
        <source>Partly: induction, three frames</source>
        <translation>부분적: 인덕션, 프레임 셋</translation>
    </message>
    <message>
        <source>induction, three states</source>
        <translation>인덕션, 상태 셋</translation>
    </message>
    <message>
        <source>Partly: induction, three states</source>
        <translation>부분적: 인덕션, 상태 셋</translation>
    </message>
    <message>
        <source>induction, three slots</source>
        <translation>인덕션, 슬롯 셋</translation>
    </message>
    <message>
        <source>Partly: induction, three slots</source>
        <translation>부분적: 인덕션, 슬롯 셋</translation>
    </message>
    <message>
        <source>uniform</source>
        <translation>균일</translation>
    </message>
    <message>
        <source>Partly: uniform</source>
        <translation>부분적: 균일</translation>
    </message>
    <message>
        <source>single token</source>
        <translation>단일 토큰</translation>
    </message>
    <message>
        <source>Partly: single token</source>
        <translation>부분적: 단일 토큰</translation>
    </message>
    <message>
        <source>single position</source>
        <translation>단일 위치</translation>
    </message>
    <message>
        <source>Partly: single position</source>
        <translation>부분적: 단일 위치</translation>
    </message>
    <message>
        <source>single group</source>
        <translation>단일 그룹</translation>
    </message>
    <message>
        <source>Partly: single group</source>
        <translation>부분적: 단일 그룹</translation>
    </message>
    <message>
        <source>single frame</source>
        <translation>단일 프레임</translation>
    </message>
    <message>
        <source>Partly: single frame</source>
        <translation>부분적: 단일 프레임</translation>
    </message>
    <message>
        <source>single state</source>
        <translation>단일 상태</translation>
    </message>
    <message>
        <source>Partly: single state</source>
        <translation>부분적: 단일 상태</translation>
    </message>
    <message>
        <source>single slot</source>
        <translation>단일 슬롯</translation>
    </message>
    <message>
        <source>Partly: single slot</source>
        <translation>부분적: 단일 슬롯</translation>
    </message>
    <message>
        <source>single key</source>
        <translation>단일 키</translation>
    </message>
    <message>
        <source>Partly: single key</source>
        <translation>부분적: 단일 키</translation>
    </message>
    <message>
        <source>Attends to the previous token</source>
        <translation>이전 토큰에 주목합니다</translation>
    </message>
    <message>
        <source>Attends to the previous position</source>
        <translation>이전 위치에 주목합니다</translation>
    </message>
    <message>
        <source>Attends to the previous group</source>
        <translation>이전 그룹에 주목합니다</translation>
    </message>
    <message>
        <source>Attends to the previous frame</source>
        <translation>이전 프레임에 주목합니다</translation>
    </message>
    <message>
        <source>Attends to the previous state</source>
        <translation>이전 상태에 주목합니다</translation>
    </message>
    <message>
        <source>Attends to the previous slot</source>
        <translation>이전 슬롯에 주목합니다</translation>
    </message>
    <message>
        <source>Attends two tokens back</source>
        <translation>토큰 두 개 전에 주목합니다</translation>
    </message>
    <message>
        <source>Attends two positions back</source>
        <translation>위치 두 개 전에 주목합니다</translation>
    </message>
    <message>
        <source>Attends two groups back</source>
        <translation>그룹 두 개 전에 주목합니다</translation>
    </message>
    <message>
        <source>Attends two frames back</source>
        <translation>프레임 두 개 전에 주목합니다</translation>
    </message>
    <message>
        <source>Attends two states back</source>
        <translation>상태 두 개 전에 주목합니다</translation>
    </message>
    <message>
        <source>Attends two slots back</source>
        <translation>슬롯 두 개 전에 주목합니다</translation>
    </message>
    <message>
        <source>Attends three tokens back</source>
        <translation>토큰 세 개 전에 주목합니다</translation>
    </message>
    <message>
        <source>Attends three positions back</source>
        <translation>위치 세 개 전에 주목합니다</translation>
    </message>
    <message>
        <source>Attends three groups back</source>
        <translation>그룹 세 개 전에 주목합니다</translation>
    </message>
    <message>
        <source>Attends three frames back</source>
        <translation>프레임 세 개 전에 주목합니다</translation>
    </message>
    <message>
        <source>Attends three states back</source>
        <translation>상태 세 개 전에 주목합니다</translation>
    </message>
    <message>
        <source>Attends three slots back</source>
        <translation>슬롯 세 개 전에 주목합니다</translation>
    </message>
    <message>
        <source>Attends locally: the current token and the previous four</source>
        <translation>국소적으로 주목합니다: 현재 토큰와(과) 이전 네 개</translation>
    </message>
    <message>
        <source>Attends locally: the current position and the previous four</source>
        <translation>국소적으로 주목합니다: 현재 위치와(과) 이전 네 개</translation>
    </message>
    <message>
        <source>Attends locally: the current group and the previous four</source>
        <translation>국소적으로 주목합니다: 현재 그룹와(과) 이전 네 개</translation>
    </message>
    <message>
        <source>Attends locally: the current frame and the previous four</source>
        <translation>국소적으로 주목합니다: 현재 프레임와(과) 이전 네 개</translation>
    </message>
    <message>
        <source>Attends locally: the current state and the previous four</source>
        <translation>국소적으로 주목합니다: 현재 상태와(과) 이전 네 개</translation>
    </message>
    <message>
        <source>Attends locally: the current slot and the previous four</source>
        <translation>국소적으로 주목합니다: 현재 슬롯와(과) 이전 네 개</translation>
    </message>
    <message>
        <source>Attends to the current token</source>
        <translation>현재 토큰에 주목합니다</translation>
    </message>
    <message>
        <source>Attends to the current position</source>
        <translation>현재 위치에 주목합니다</translation>
    </message>
    <message>
        <source>Attends to the current group</source>
        <translation>현재 그룹에 주목합니다</translation>
    </message>
    <message>
        <source>Attends to the current frame</source>
        <translation>현재 프레임에 주목합니다</translation>
    </message>
    <message>
        <source>Attends to the current state</source>
        <translation>현재 상태에 주목합니다</translation>
    </message>
    <message>
        <source>Attends to the current slot</source>
        <translation>현재 슬롯에 주목합니다</translation>
    </message>
    <message>
        <source>Attends to the next token</source>
        <translation>다음 토큰에 주목합니다</translation>
    </message>
    <message>
        <source>Attends to the next position</source>
        <translation>다음 위치에 주목합니다</translation>
    </message>
    <message>
        <source>Attends to the next group</source>
        <translation>다음 그룹에 주목합니다</translation>
    </message>
    <message>
        <source>Attends to the next frame</source>
        <translation>다음 프레임에 주목합니다</translation>
    </message>
    <message>
        <source>Attends to the next state</source>
        <translation>다음 상태에 주목합니다</translation>
    </message>
    <message>
        <source>Attends to the next slot</source>
        <translation>다음 슬롯에 주목합니다</translation>
    </message>
    <message>
        <source>Attends locally: up to two tokens to either side</source>
        <translation>국소적으로 주목합니다: 양쪽 토큰 두 개까지</translation>
    </message>
    <message>
        <source>Attends locally: up to two positions to either side</source>
        <translation>국소적으로 주목합니다: 양쪽 위치 두 개까지</translation>
    </message>
    <message>
        <source>Attends locally: up to two groups to either side</source>
        <translation>국소적으로 주목합니다: 양쪽 그룹 두 개까지</translation>
    </message>
    <message>
        <source>Attends locally: up to two frames to either side</source>
        <translation>국소적으로 주목합니다: 양쪽 프레임 두 개까지</translation>
    </message>
    <message>
        <source>Attends locally: up to two states to either side</source>
        <translation>국소적으로 주목합니다: 양쪽 상태 두 개까지</translation>
    </message>
    <message>
        <source>Attends locally: up to two slots to either side</source>
        <translation>국소적으로 주목합니다: 양쪽 슬롯 두 개까지</translation>
    </message>
    <message>
        <source>Attends to the last position of its group</source>
        <translation>그룹의 마지막 위치에 주목합니다</translation>
    </message>
    <message>
        <source>Attends to the first position of its group</source>
        <translation>그룹의 첫 위치에 주목합니다</translation>
    </message>
    <message>
        <source>Attends to the first token of the source</source>
        <translation>원문의 첫 토큰에 주목합니다</translation>
    </message>
    <message>
        <source>Attends to the first token of the text</source>
        <translation>텍스트의 첫 토큰에 주목합니다</translation>
    </message>
    <message>
        <source>Attends to the first position of the source</source>
        <translation>원문의 첫 위치에 주목합니다</translation>
    </message>
    <message>
        <source>Attends to the first position of the text</source>
        <translation>텍스트의 첫 위치에 주목합니다</translation>
    </message>
    <message>
        <source>Attends to the first group of the source</source>
        <translation>원문의 첫 그룹에 주목합니다</translation>
    </message>
    <message>
        <source>Attends to the first group of the text</source>
        <translation>텍스트의 첫 그룹에 주목합니다</translation>
    </message>
    <message>
        <source>Attends to the first frame of the source</source>
        <translation>원문의 첫 프레임에 주목합니다</translation>
    </message>
    <message>
        <source>Attends to the first frame of the text</source>
        <translation>텍스트의 첫 프레임에 주목합니다</translation>
    </message>
    <message>
        <source>Attends to the first state of the source</source>
        <translation>원문의 첫 상태에 주목합니다</translation>
    </message>
    <message>
        <source>Attends to the first state of the text</source>
        <translation>텍스트의 첫 상태에 주목합니다</translation>
    </message>
    <message>
        <source>Attends to the first slot of the source</source>
        <translation>원문의 첫 슬롯에 주목합니다</translation>
    </message>
    <message>
        <source>Attends to the first slot of the text</source>
        <translation>텍스트의 첫 슬롯에 주목합니다</translation>
    </message>
    <message>
        <source>Attends to the last token of the source</source>
        <translation>원문의 마지막 토큰에 주목합니다</translation>
    </message>
    <message>
        <source>Attends to the last token of the text</source>
        <translation>텍스트의 마지막 토큰에 주목합니다</translation>
    </message>
    <message>
        <source>Attends to the last position of the source</source>
        <translation>원문의 마지막 위치에 주목합니다</translation>
    </message>
    <message>
        <source>Attends to the last position of the text</source>
        <translation>텍스트의 마지막 위치에 주목합니다</translation>
    </message>
    <message>
        <source>Attends to the last group of the source</source>
        <translation>원문의 마지막 그룹에 주목합니다</translation>
    </message>
    <message>
        <source>Attends to the last group of the text</source>
        <translation>텍스트의 마지막 그룹에 주목합니다</translation>
    </message>
    <message>
        <source>Attends to the last frame of the source</source>
        <translation>원문의 마지막 프레임에 주목합니다</translation>
    </message>
    <message>
        <source>Attends to the last frame of the text</source>
        <translation>텍스트의 마지막 프레임에 주목합니다</translation>
    </message>
    <message>
        <source>Attends to the last state of the source</source>
        <translation>원문의 마지막 상태에 주목합니다</translation>
    </message>
    <message>
        <source>Attends to the last state of the text</source>
        <translation>텍스트의 마지막 상태에 주목합니다</translation>
    </message>
    <message>
        <source>Attends to the last slot of the source</source>
        <translation>원문의 마지막 슬롯에 주목합니다</translation>
    </message>
    <message>
        <source>Attends to the last slot of the text</source>
        <translation>텍스트의 마지막 슬롯에 주목합니다</translation>
    </message>
    <message>
        <source>Attends to the special tokens at the start</source>
        <translation>처음의 특수 토큰에 주목합니다</translation>
    </message>
    <message>
        <source>Attends to separators</source>
        <translation>구분 토큰에 주목합니다</translation>
    </message>
    <message>
        <source>Attends to special tokens</source>
        <translation>특수 토큰에 주목합니다</translation>
    </message>
    <message>
        <source>Attends to the source in order (diagonal)</source>
        <translation>원문을(를) 순서대로 따라갑니다(대각선)</translation>
    </message>
    <message>
        <source>Attends to the text in order (diagonal)</source>
        <translation>텍스트을(를) 순서대로 따라갑니다(대각선)</translation>
    </message>
    <message>
        <source>Attends to the same token of the source</source>
        <translation>원문의 같은 토큰에 주목합니다</translation>
    </message>
    <message>
        <source>Attends to the same token of the text</source>
        <translation>텍스트의 같은 토큰에 주목합니다</translation>
    </message>
    <message>
        <source>Attends to the same position of the source</source>
        <translation>원문의 같은 위치에 주목합니다</translation>
    </message>
    <message>
        <source>Attends to the same position of the text</source>
        <translation>텍스트의 같은 위치에 주목합니다</translation>
    </message>
    <message>
        <source>Attends to the same group of the source</source>
        <translation>원문의 같은 그룹에 주목합니다</translation>
    </message>
    <message>
        <source>Attends to the same group of the text</source>
        <translation>텍스트의 같은 그룹에 주목합니다</translation>
    </message>
    <message>
        <source>Attends to the same frame of the source</source>
        <translation>원문의 같은 프레임에 주목합니다</translation>
    </message>
    <message>
        <source>Attends to the same frame of the text</source>
        <translation>텍스트의 같은 프레임에 주목합니다</translation>
    </message>
    <message>
        <source>Attends to the same state of the source</source>
        <translation>원문의 같은 상태에 주목합니다</translation>
    </message>
    <message>
        <source>Attends to the same state of the text</source>
        <translation>텍스트의 같은 상태에 주목합니다</translation>
    </message>
    <message>
        <source>Attends to the same slot of the source</source>
        <translation>원문의 같은 슬롯에 주목합니다</translation>
    </message>
    <message>
        <source>Attends to the same slot of the text</source>
        <translation>텍스트의 같은 슬롯에 주목합니다</translation>
    </message>
    <message>
        <source>Attends to the other text</source>
        <translation>다른 텍스트에 주목합니다</translation>
    </message>
    <message>
        <source>Attends to the start of the word</source>
        <translation>단어의 시작에 주목합니다</translation>
    </message>
    <message>
        <source>Attends within the current word</source>
        <translation>현재 단어 안에 주목합니다</translation>
    </message>
    <message>
        <source>Attends to the previous word</source>
        <translation>이전 단어에 주목합니다</translation>
    </message>
    <message>
        <source>Attends to the previous space</source>
        <translation>이전 공백에 주목합니다</translation>
    </message>
    <message>
        <source>Attends to the previous punctuation</source>
        <translation>이전 문장 부호에 주목합니다</translation>
    </message>
    <message>
        <source>Attends to the start of the sentence</source>
        <translation>문장의 시작에 주목합니다</translation>
    </message>
    <message>
        <source>Attends to capital letters</source>
        <translation>대문자에 주목합니다</translation>
    </message>
    <message>
        <source>Attends to punctuation</source>
        <translation>문장 부호에 주목합니다</translation>
    </message>
    <message>
        <source>Attends to spaces</source>
        <translation>공백에 주목합니다</translation>
    </message>
    <message>
        <source>Attends to word starts</source>
        <translation>단어의 시작들에 주목합니다</translation>
    </message>
    <message>
        <source>Attends to digits</source>
        <translation>숫자에 주목합니다</translation>
    </message>
    <message>
        <source>Attends to vowels</source>
        <translation>모음에 주목합니다</translation>
    </message>
    <message>
        <source>Attends to the previous occurrence of the same token</source>
        <translation>같은 토큰의 바로 앞 등장에 주목합니다</translation>
    </message>
    <message>
        <source>Attends to the previous occurrence of the same position</source>
        <translation>같은 위치의 바로 앞 등장에 주목합니다</translation>
    </message>
    <message>
        <source>Attends to the previous occurrence of the same group</source>
        <translation>같은 그룹의 바로 앞 등장에 주목합니다</translation>
    </message>
    <message>
        <source>Attends to the previous occurrence of the same frame</source>
        <translation>같은 프레임의 바로 앞 등장에 주목합니다</translation>
    </message>
    <message>
        <source>Attends to the previous occurrence of the same state</source>
        <translation>같은 상태의 바로 앞 등장에 주목합니다</translation>
    </message>
    <message>
        <source>Attends to the previous occurrence of the same slot</source>
        <translation>같은 슬롯의 바로 앞 등장에 주목합니다</translation>
    </message>
    <message>
        <source>Attends to earlier occurrences of the same token</source>
        <translation>같은 토큰의 앞선 등장에 주목합니다</translation>
    </message>
    <message>
        <source>Attends to earlier occurrences of the same position</source>
        <translation>같은 위치의 앞선 등장에 주목합니다</translation>
    </message>
    <message>
        <source>Attends to earlier occurrences of the same group</source>
        <translation>같은 그룹의 앞선 등장에 주목합니다</translation>
    </message>
    <message>
        <source>Attends to earlier occurrences of the same frame</source>
        <translation>같은 프레임의 앞선 등장에 주목합니다</translation>
    </message>
    <message>
        <source>Attends to earlier occurrences of the same state</source>
        <translation>같은 상태의 앞선 등장에 주목합니다</translation>
    </message>
    <message>
        <source>Attends to earlier occurrences of the same slot</source>
        <translation>같은 슬롯의 앞선 등장에 주목합니다</translation>
    </message>
    <message>
        <source>Attends to other occurrences of the same token</source>
        <translation>같은 토큰의 다른 등장에 주목합니다</translation>
    </message>
    <message>
        <source>Attends to other occurrences of the same position</source>
        <translation>같은 위치의 다른 등장에 주목합니다</translation>
    </message>
    <message>
        <source>Attends to other occurrences of the same group</source>
        <translation>같은 그룹의 다른 등장에 주목합니다</translation>
    </message>
    <message>
        <source>Attends to other occurrences of the same frame</source>
        <translation>같은 프레임의 다른 등장에 주목합니다</translation>
    </message>
    <message>
        <source>Attends to other occurrences of the same state</source>
        <translation>같은 상태의 다른 등장에 주목합니다</translation>
    </message>
    <message>
        <source>Attends to other occurrences of the same slot</source>
        <translation>같은 슬롯의 다른 등장에 주목합니다</translation>
    </message>
    <message>
        <source>Attends to earlier occurrences of the same word</source>
        <translation>같은 단어의 앞선 등장에 주목합니다</translation>
    </message>
    <message>
        <source>Attends to the rarest word of the sentence</source>
        <translation>문장에서 가장 드문 단어에 주목합니다</translation>
    </message>
    <message>
        <source>Attends to what followed the same token earlier (induction)</source>
        <translation>앞서 같은 토큰 다음에 온 것에 주목합니다(인덕션)</translation>
    </message>
    <message>
        <source>Attends to what followed the same position earlier (induction)</source>
        <translation>앞서 같은 위치 다음에 온 것에 주목합니다(인덕션)</translation>
    </message>
    <message>
        <source>Attends to what followed the same group earlier (induction)</source>
        <translation>앞서 같은 그룹 다음에 온 것에 주목합니다(인덕션)</translation>
    </message>
    <message>
        <source>Attends to what followed the same frame earlier (induction)</source>
        <translation>앞서 같은 프레임 다음에 온 것에 주목합니다(인덕션)</translation>
    </message>
    <message>
        <source>Attends to what followed the same state earlier (induction)</source>
        <translation>앞서 같은 상태 다음에 온 것에 주목합니다(인덕션)</translation>
    </message>
    <message>
        <source>Attends to what followed the same slot earlier (induction)</source>
        <translation>앞서 같은 슬롯 다음에 온 것에 주목합니다(인덕션)</translation>
    </message>
    <message>
        <source>Attends to what followed the same two tokens earlier (induction)</source>
        <translation>앞서 같은 토큰 둘 다음에 온 것에 주목합니다(인덕션)</translation>
    </message>
    <message>
        <source>Attends to what followed the same two positions earlier (induction)</source>
        <translation>앞서 같은 위치 둘 다음에 온 것에 주목합니다(인덕션)</translation>
    </message>
    <message>
        <source>Attends to what followed the same two groups earlier (induction)</source>
        <translation>앞서 같은 그룹 둘 다음에 온 것에 주목합니다(인덕션)</translation>
    </message>
    <message>
        <source>Attends to what followed the same two frames earlier (induction)</source>
        <translation>앞서 같은 프레임 둘 다음에 온 것에 주목합니다(인덕션)</translation>
    </message>
    <message>
        <source>Attends to what followed the same two states earlier (induction)</source>
        <translation>앞서 같은 상태 둘 다음에 온 것에 주목합니다(인덕션)</translation>
    </message>
    <message>
        <source>Attends to what followed the same two slots earlier (induction)</source>
        <translation>앞서 같은 슬롯 둘 다음에 온 것에 주목합니다(인덕션)</translation>
    </message>
    <message>
        <source>Attends to what followed the same three tokens earlier (induction)</source>
        <translation>앞서 같은 토큰 셋 다음에 온 것에 주목합니다(인덕션)</translation>
    </message>
    <message>
        <source>Attends to what followed the same three positions earlier (induction)</source>
        <translation>앞서 같은 위치 셋 다음에 온 것에 주목합니다(인덕션)</translation>
    </message>
    <message>
        <source>Attends to what followed the same three groups earlier (induction)</source>
        <translation>앞서 같은 그룹 셋 다음에 온 것에 주목합니다(인덕션)</translation>
    </message>
    <message>
        <source>Attends to what followed the same three frames earlier (induction)</source>
        <translation>앞서 같은 프레임 셋 다음에 온 것에 주목합니다(인덕션)</translation>
    </message>
    <message>
        <source>Attends to what followed the same three states earlier (induction)</source>
        <translation>앞서 같은 상태 셋 다음에 온 것에 주목합니다(인덕션)</translation>
    </message>
    <message>
        <source>Attends to what followed the same three slots earlier (induction)</source>
        <translation>앞서 같은 슬롯 셋 다음에 온 것에 주목합니다(인덕션)</translation>
    </message>
    <message>
        <source>Uniform attention</source>
        <translation>균일 어텐션</translation>
    </message>
    <message>
        <source>Single key (trivial)</source>
        <translation>단일 키(자명)</translation>
    </message>
    <message>
        <source>Single key, weight 1 (trivial)</source>
        <translation>단일 키, 가중치 1(자명)</translation>
    </message>
    <message>
        <source>No single role on this text</source>
        <translation>이 텍스트에서는 뚜렷한 역할이 없습니다</translation>
    </message>
    <message>
        <source>No single role on these texts</source>
        <translation>이 텍스트들에서는 뚜렷한 역할이 없습니다</translation>
    </message>
    <message>
        <source>too few rows</source>
        <translation>행이 너무 적음</translation>
    </message>
    <message>
        <source>there is only one key</source>
        <translation>키가 하나뿐임</translation>
    </message>
    <message>
        <source>there is only one key in each window</source>
        <translation>각 창에 키가 하나뿐임</translation>
    </message>
    <message>
        <source>Entropy, nats</source>
        <translation>엔트로피, nat</translation>
    </message>
    <message>
        <source>Mean distance, {unit}s</source>
        <translation>평균 거리, {unit}</translation>
    </message>
    <message>
        <source>Offset, {unit}s</source>
        <translation>오프셋, {unit}</translation>
    </message>
    <message>
        <source>Kernel centre, {unit}s</source>
        <translation>커널 중심, {unit}</translation>
    </message>
    <message>
        <source>Kernel width, {unit}s</source>
        <translation>커널 너비, {unit}</translation>
    </message>
    <message>
        <source>harmful</source>
        <translation>해로움</translation>
    </message>
    <message>
        <source>important</source>
        <translation>중요</translation>
    </message>
    <message>
        <source>pooling</source>
        <translation>풀링</translation>
    </message>
    <message>
        <source>{n:,} step</source>
        <translation>단계 {n:,}개</translation>
    </message>
    <message>
        <source>{n:,} steps</source>
        <translation>단계 {n:,}개</translation>
    </message>
    <message>
        <source>{n:,} product</source>
        <translation>곱 {n:,}개</translation>
    </message>
    <message>
        <source>{n:,} products</source>
        <translation>곱 {n:,}개</translation>
    </message>
    <message>
        <source>{n:,} self-attention head</source>
        <translation>셀프 어텐션 헤드 {n:,}개</translation>
    </message>
    <message>
        <source>{n:,} self-attention heads</source>
        <translation>셀프 어텐션 헤드 {n:,}개</translation>
    </message>
    <message>
        <source>{n:,} cross-attention head</source>
        <translation>크로스 어텐션 헤드 {n:,}개</translation>
    </message>
    <message>
        <source>{n:,} cross-attention heads</source>
        <translation>크로스 어텐션 헤드 {n:,}개</translation>
    </message>
    <message>
        <source>{n:,} finished layer</source>
        <translation>완료된 레이어 {n:,}개</translation>
    </message>
    <message>
        <source>{n:,} finished layers</source>
        <translation>완료된 레이어 {n:,}개</translation>
    </message>
    <message>
        <source>The full rollout is computed for texts of up to {most:,} {unit}s; for this one, only the row of the selected output.</source>
        <translation>전체 롤아웃은 {unit} {most:,}개 이하의 텍스트에서만 계산합니다. 이 텍스트에서는 선택한 출력의 행만 계산합니다.</translation>
    </message>
    <message>
        <source>Token</source>
        <translation>토큰</translation>
    </message>
    <message>
        <source>Output</source>
        <translation>출력</translation>
    </message>
    <message>
        <source>Point at a cell to read it; click to select its output.</source>
        <translation>칸을 가리키면 내용을 읽고, 클릭하면 그 출력을 선택합니다.</translation>
    </message>
    <message>
        <source>The output at {output} has no weight on any token.</source>
        <translation>{output} 위치의 출력은 어떤 토큰에도 가중치를 두지 않습니다.</translation>
    </message>
    <message>
        <source>Largest weights of the output at {output}: {tokens}.</source>
        <translation>{output} 위치의 출력에서 가장 큰 가중치: {tokens}.</translation>
    </message>
    <message>
        <source>Top sources of the output at {output}: {tokens}.</source>
        <translation>{output} 위치의 출력의 주요 출처: {tokens}.</translation>
    </message>
    <message>
        <source>adds {amount} to</source>
        <translation>{amount} 더함</translation>
    </message>
    <message>
        <source>subtracts {amount} from</source>
        <translation>{amount} 뺌</translation>
    </message>
    <message>
        <source>, {away} back</source>
        <translation> ({away} 이전)</translation>
    </message>
    <message>
        <source>, {away} ahead</source>
        <translation> ({away} 이후)</translation>
    </message>
    <message>
        <source>, itself</source>
        <translation> (자기 자신)</translation>
    </message>
    <message>
        <source>{share} of the output at {output} comes from {token}</source>
        <translation>{output} 위치의 출력의 {share} 출처: {token}</translation>
    </message>
    <message>
        <source>{share} went to {level}</source>
        <translation>{level} 단계로 간 비율 {share}</translation>
    </message>
    <message>
        <source>{share} stayed at {level}</source>
        <translation>{level} 단계에 남은 비율 {share}</translation>
    </message>
    <message>
        <source>, from {far:,.0f}</source>
        <translation>, {far:,.0f}개 이전</translation>
    </message>
    <message>
        <source>, from {far:,.0f} {unit}s back on average</source>
        <translation>, 평균 {unit} {far:,.0f}개 이전</translation>
    </message>
    <message>
        <source>Rollout</source>
        <translation>롤아웃</translation>
    </message>
    <message>
        <source>Share of the output that comes from each token, through all layers</source>
        <translation>모든 레이어를 거쳐 각 토큰에서 온 출력의 비율</translation>
    </message>
    <message>
        <source>Product</source>
        <translation>곱</translation>
    </message>
    <message>
        <source>What each token adds or subtracts, through all layers</source>
        <translation>모든 레이어를 거쳐 각 토큰이 더하거나 빼는 양</translation>
    </message>
    <message>
        <source>Selected output by token</source>
        <translation>토큰별로 본 선택한 출력</translation>
    </message>
    <message>
        <source>{amount} via {level}</source>
        <translation>{amount}, {level} 경유</translation>
    </message>
    <message>
        <source>Mean of heads</source>
        <translation>헤드 평균</translation>
    </message>
    <message>
        <source>The mean over the heads of a layer</source>
        <translation>한 레이어의 헤드 평균</translation>
    </message>
    <message>
        <source>Max of heads</source>
        <translation>헤드 최댓값</translation>
    </message>
    <message>
        <source>The maximum over the heads of a layer, cell by cell</source>
        <translation>한 레이어의 헤드 최댓값(칸별)</translation>
    </message>
    <message>
        <source>Min of heads</source>
        <translation>헤드 최솟값</translation>
    </message>
    <message>
        <source>The minimum over the heads of a layer, cell by cell</source>
        <translation>한 레이어의 헤드 최솟값(칸별)</translation>
    </message>
    <message>
        <source>This head</source>
        <translation>이 헤드</translation>
    </message>
    <message>
        <source>The selected head in its layer, the mean in all others</source>
        <translation>해당 레이어에서는 선택한 헤드, 다른 모든 레이어에서는 평균</translation>
    </message>
    <message>
        <source>How the heads of a layer are combined</source>
        <translation>한 레이어의 헤드를 합치는 방법</translation>
    </message>
    <message>
        <source>A = mean_h A_h, max_h A_h, min_h A_h</source>
        <translation>A = mean_h A_h, max_h A_h, min_h A_h</translation>
    </message>
    <message>
        <source>Abnar and Zuidema 2020; maps.md</source>
        <translation>Abnar and Zuidema 2020; maps.md</translation>
    </message>
    <message>
        <source>Share of the residual connection in each layer</source>
        <translation>각 레이어에서 잔차 연결의 비율</translation>
    </message>
    <message>
        <source>Abnar and Zuidema 2020</source>
        <translation>Abnar and Zuidema 2020</translation>
    </message>
    <message>
        <source>Keep negative weights: the product of A + I, not normalised</source>
        <translation>음수 가중치 유지: 정규화하지 않은 A + I의 곱</translation>
    </message>
    <message>
        <source>No attention rollout yet</source>
        <translation>아직 어텐션 롤아웃이 없습니다</translation>
    </message>
    <message>
        <source>Run the model on a text to compute it.</source>
        <translation>계산하려면 텍스트에 모델을 실행하십시오.</translation>
    </message>
    <message>
        <source>Attention rollout</source>
        <translation>어텐션 롤아웃</translation>
    </message>
    <message>
        <source>Heads</source>
        <translation>헤드</translation>
    </message>
    <message>
        <source>Residual share</source>
        <translation>잔차 비율</translation>
    </message>
    <message>
        <source>{share} residual</source>
        <translation>잔차 {share}</translation>
    </message>
    <message>
        <source>Signed</source>
        <translation>부호 유지</translation>
    </message>
    <message>
        <source>{name} via {level}</source>
        <translation>{name}, {level} 경유</translation>
    </message>
    <message>
        <source>How much each output depends on each token, from gradients in float64. Works with any model that reads text, also without attention, such as an LSTM.</source>
        <translation>각 출력이 각 토큰에 얼마나 의존하는지 float64 그래디언트로 구합니다. LSTM처럼 어텐션이 없는 모델을 포함해 텍스트를 읽는 모든 모델에서 쓸 수 있습니다.</translation>
    </message>
    <message>
        <source>Also enter the decoder's text</source>
        <translation>디코더의 텍스트도 입력하십시오</translation>
    </message>
    <message>
        <source>Measuring reach</source>
        <translation>도달 범위 측정 중</translation>
    </message>
    <message>
        <source>Reach of outputs</source>
        <translation>출력의 도달 범위</translation>
    </message>
    <message>
        <source>Only for encoder-decoders</source>
        <translation>인코더-디코더 모델만 해당</translation>
    </message>
    <message>
        <source>Add checkpoint…</source>
        <translation>체크포인트 추가…</translation>
    </message>
    <message>
        <source>Text</source>
        <translation>텍스트</translation>
    </message>
    <message>
        <source>Decoder's text</source>
        <translation>디코더의 텍스트</translation>
    </message>
    <message>
        <source>Models</source>
        <translation>모델</translation>
    </message>
    <message>
        <source>Measure</source>
        <translation>측정</translation>
    </message>
    <message>
        <source>Add a checkpoint.</source>
        <translation>체크포인트를 추가하십시오.</translation>
    </message>
    <message>
        <source>Enter a text.</source>
        <translation>텍스트를 입력하십시오.</translation>
    </message>
    <message>
        <source>Add a checkpoint</source>
        <translation>체크포인트 추가</translation>
    </message>
    <message>
        <source>Remove {name}</source>
        <translation>{name} 제거</translation>
    </message>
    <message>
        <source>Open a model first</source>
        <translation>먼저 모델을 여십시오</translation>
    </message>
    <message>
        <source>Run a model on a text first</source>
        <translation>먼저 텍스트에 모델을 실행하십시오</translation>
    </message>
    <message>
        <source>The capture is incomplete: some layers are missing</source>
        <translation>캡처가 완전하지 않습니다: 일부 레이어가 없습니다</translation>
    </message>
    <message>
        <source>Open a checkpoint first</source>
        <translation>먼저 체크포인트를 여십시오</translation>
    </message>
    <message>
        <source>Nothing is open yet</source>
        <translation>아직 열린 항목이 없습니다</translation>
    </message>
    <message>
        <source>The model is running: stop it first</source>
        <translation>모델이 실행 중입니다: 먼저 중지하십시오</translation>
    </message>
    <message>
        <source>Open the checkpoint of this capture first</source>
        <translation>먼저 이 캡처의 체크포인트를 여십시오</translation>
    </message>
    <message>
        <source>The activation was replaced: open the original checkpoint first</source>
        <translation>활성화 함수를 바꾼 상태입니다: 먼저 원래 체크포인트를 여십시오</translation>
    </message>
    <message>
        <source>Run a model on a text file first</source>
        <translation>먼저 텍스트 파일에 모델을 실행하십시오</translation>
    </message>
    <message>
        <source>Choose what to compare with first</source>
        <translation>먼저 비교 대상을 선택하십시오</translation>
    </message>
    <message>
        <source>Open a study of many runs first</source>
        <translation>먼저 실행이 여러 개인 스터디를 여십시오</translation>
    </message>
    <message>
        <source>Choose data on the Prune page first</source>
        <translation>먼저 프루닝 페이지에서 데이터를 선택하십시오</translation>
    </message>
    <message>
        <source>Compute head importance first</source>
        <translation>먼저 헤드 중요도를 계산하십시오</translation>
    </message>
    <message>
        <source>No head is switched off</source>
        <translation>꺼진 헤드가 없습니다</translation>
    </message>
    <message>
        <source>This model has only one resolution</source>
        <translation>이 모델에는 해상도 단계가 하나뿐입니다</translation>
    </message>
    <message>
        <source>Nothing is running</source>
        <translation>실행 중인 작업이 없습니다</translation>
    </message>
    <message>
        <source>Models that read two texts cannot be evaluated</source>
        <translation>두 텍스트를 읽는 모델은 평가할 수 없습니다</translation>
    </message>
    <message>
        <source>This model has no slots</source>
        <translation>이 모델에는 슬롯이 없습니다</translation>
    </message>
    <message>
        <source>A report compares two models</source>
        <translation>보고서는 두 모델을 비교합니다</translation>
    </message>
    <message>
        <source>B is a saved capture: a report compares two models</source>
        <translation>B는 저장된 캡처입니다: 보고서는 두 모델을 비교합니다</translation>
    </message>
    <message>
        <source>Switch all heads on first: a report compares full models</source>
        <translation>먼저 모든 헤드를 켜십시오: 보고서는 전체 모델을 비교합니다</translation>
    </message>
    <message>
        <source>Reports do not support models with two texts or hidden states</source>
        <translation>두 텍스트를 읽거나 은닉 상태를 다루는 모델은 보고서를 지원하지 않습니다</translation>
    </message>
    <message>
        <source>Bare</source>
        <translation>Bare</translation>
    </message>
    <message>
        <source>File</source>
        <translation>파일</translation>
    </message>
    <message>
        <source>Edit</source>
        <translation>편집</translation>
    </message>
    <message>
        <source>View</source>
        <translation>보기</translation>
    </message>
    <message>
        <source>Analyse</source>
        <translation>분석</translation>
    </message>
    <message>
        <source>Help</source>
        <translation>도움말</translation>
    </message>
    <message>
        <source>Open recent</source>
        <translation>최근 항목 열기</translation>
    </message>
    <message>
        <source>Open file…</source>
        <translation>파일 열기…</translation>
    </message>
    <message>
        <source>Open checkpoint folder…</source>
        <translation>체크포인트 폴더 열기…</translation>
    </message>
    <message>
        <source>Open study file…</source>
        <translation>스터디 파일 열기…</translation>
    </message>
    <message>
        <source>Open sample model</source>
        <translation>샘플 모델 열기</translation>
    </message>
    <message>
        <source>Clear recent files</source>
        <translation>최근 파일 지우기</translation>
    </message>
    <message>
        <source>No recent files</source>
        <translation>최근 파일이 없습니다</translation>
    </message>
    <message>
        <source>Replace activation function…</source>
        <translation>활성화 함수 바꾸기…</translation>
    </message>
    <message>
        <source>Save capture…</source>
        <translation>캡처 저장…</translation>
    </message>
    <message>
        <source>Show slots first: captures store slots</source>
        <translation>먼저 슬롯을 표시하십시오: 캡처에는 슬롯이 저장됩니다</translation>
    </message>
    <message>
        <source>Save comparison capture…</source>
        <translation>비교 캡처 저장…</translation>
    </message>
    <message>
        <source>The comparison is already saved</source>
        <translation>비교 캡처가 이미 저장되어 있습니다</translation>
    </message>
    <message>
        <source>Save session</source>
        <translation>세션 저장</translation>
    </message>
    <message>
        <source>Save session as…</source>
        <translation>다른 이름으로 세션 저장…</translation>
    </message>
    <message>
        <source>Export figure…</source>
        <translation>그림 내보내기…</translation>
    </message>
    <message>
        <source>Close window</source>
        <translation>창 닫기</translation>
    </message>
    <message>
        <source>Quit</source>
        <translation>종료</translation>
    </message>
    <message>
        <source>Undo</source>
        <translation>실행 취소</translation>
    </message>
    <message>
        <source>Nothing to undo</source>
        <translation>실행 취소할 내용이 없습니다</translation>
    </message>
    <message>
        <source>Redo</source>
        <translation>다시 실행</translation>
    </message>
    <message>
        <source>Nothing to redo</source>
        <translation>다시 실행할 내용이 없습니다</translation>
    </message>
    <message>
        <source>Edit text…</source>
        <translation>텍스트 편집…</translation>
    </message>
    <message>
        <source>Run token IDs from file…</source>
        <translation>파일의 토큰 ID로 실행…</translation>
    </message>
    <message>
        <source>Find text…</source>
        <translation>텍스트 찾기…</translation>
    </message>
    <message>
        <source>Copy picture of this pane</source>
        <translation>이 패널을 이미지로 복사</translation>
    </message>
    <message>
        <source>Copy values as a table</source>
        <translation>값을 표로 복사</translation>
    </message>
    <message>
        <source>Copy as command</source>
        <translation>명령으로 복사</translation>
    </message>
    <message>
        <source>Preferences…</source>
        <translation>환경설정…</translation>
    </message>
    <message>
        <source>Ctrl+,</source>
        <translation>Ctrl+,</translation>
    </message>
    <message>
        <source>Inspect</source>
        <translation>살펴보기</translation>
    </message>
    <message>
        <source>Ctrl+1</source>
        <translation>Ctrl+1</translation>
    </message>
    <message>
        <source>Follow</source>
        <translation>따라가기</translation>
    </message>
    <message>
        <source>Ctrl+2</source>
        <translation>Ctrl+2</translation>
    </message>
    <message>
        <source>Prune</source>
        <translation>프루닝</translation>
    </message>
    <message>
        <source>Ctrl+3</source>
        <translation>Ctrl+3</translation>
    </message>
    <message>
        <source>Compare</source>
        <translation>비교</translation>
    </message>
    <message>
        <source>Ctrl+4</source>
        <translation>Ctrl+4</translation>
    </message>
    <message>
        <source>Study</source>
        <translation>스터디</translation>
    </message>
    <message>
        <source>Ctrl+5</source>
        <translation>Ctrl+5</translation>
    </message>
    <message>
        <source>Fit map to pane</source>
        <translation>맵을 패널에 맞추기</translation>
    </message>
    <message>
        <source>Ctrl+0</source>
        <translation>Ctrl+0</translation>
    </message>
    <message>
        <source>Next pane</source>
        <translation>다음 패널</translation>
    </message>
    <message>
        <source>Previous pane</source>
        <translation>이전 패널</translation>
    </message>
    <message>
        <source>Next text</source>
        <translation>다음 텍스트</translation>
    </message>
    <message>
        <source>This is the last text</source>
        <translation>마지막 텍스트입니다</translation>
    </message>
    <message>
        <source>Previous text</source>
        <translation>이전 텍스트</translation>
    </message>
    <message>
        <source>This is the first text</source>
        <translation>첫 텍스트입니다</translation>
    </message>
    <message>
        <source>Show slots / tokens</source>
        <translation>슬롯/토큰 표시</translation>
    </message>
    <message>
        <source>Toggle dark mode</source>
        <translation>어두운 모드 전환</translation>
    </message>
    <message>
        <source>Increase interface scale</source>
        <translation>화면 배율 늘리기</translation>
    </message>
    <message>
        <source>Ctrl++</source>
        <translation>Ctrl++</translation>
    </message>
    <message>
        <source>Ctrl+=</source>
        <translation>Ctrl+=</translation>
    </message>
    <message>
        <source>Decrease interface scale</source>
        <translation>화면 배율 줄이기</translation>
    </message>
    <message>
        <source>Ctrl+-</source>
        <translation>Ctrl+-</translation>
    </message>
    <message>
        <source>Show side panels</source>
        <translation>측면 패널 표시</translation>
    </message>
    <message>
        <source>Side panels belong to the Inspect page</source>
        <translation>측면 패널은 살펴보기 페이지에만 있습니다</translation>
    </message>
    <message>
        <source>Reset layout</source>
        <translation>레이아웃 초기화</translation>
    </message>
    <message>
        <source>Alt+0</source>
        <translation>Alt+0</translation>
    </message>
    <message>
        <source>Full screen</source>
        <translation>전체 화면</translation>
    </message>
    <message>
        <source>Show map</source>
        <translation>맵 표시</translation>
    </message>
    <message>
        <source>Alt+1</source>
        <translation>Alt+1</translation>
    </message>
    <message>
        <source>Show links</source>
        <translation>연결선 표시</translation>
    </message>
    <message>
        <source>Alt+2</source>
        <translation>Alt+2</translation>
    </message>
    <message>
        <source>Show neurons</source>
        <translation>뉴런 표시</translation>
    </message>
    <message>
        <source>Alt+3</source>
        <translation>Alt+3</translation>
    </message>
    <message>
        <source>Show attribution</source>
        <translation>기여도 분석 표시</translation>
    </message>
    <message>
        <source>Alt+4</source>
        <translation>Alt+4</translation>
    </message>
    <message>
        <source>Show attention rollout</source>
        <translation>어텐션 롤아웃 표시</translation>
    </message>
    <message>
        <source>Alt+5</source>
        <translation>Alt+5</translation>
    </message>
    <message>
        <source>Show all heads</source>
        <translation>모든 헤드 표시</translation>
    </message>
    <message>
        <source>Alt+6</source>
        <translation>Alt+6</translation>
    </message>
    <message>
        <source>Next head</source>
        <translation>다음 헤드</translation>
    </message>
    <message>
        <source>Previous head</source>
        <translation>이전 헤드</translation>
    </message>
    <message>
        <source>Next layer</source>
        <translation>다음 레이어</translation>
    </message>
    <message>
        <source>Previous layer</source>
        <translation>이전 레이어</translation>
    </message>
    <message>
        <source>Coarser level</source>
        <translation>더 거친 단계</translation>
    </message>
    <message>
        <source>Finer level</source>
        <translation>더 세밀한 단계</translation>
    </message>
    <message>
        <source>Next query</source>
        <translation>다음 쿼리</translation>
    </message>
    <message>
        <source>Right</source>
        <translation>정답</translation>
    </message>
    <message>
        <source>Previous query</source>
        <translation>이전 쿼리</translation>
    </message>
    <message>
        <source>Left</source>
        <translation>왼쪽</translation>
    </message>
    <message>
        <source>Next key</source>
        <translation>다음 키</translation>
    </message>
    <message>
        <source>Down</source>
        <translation>Down</translation>
    </message>
    <message>
        <source>Previous key</source>
        <translation>이전 키</translation>
    </message>
    <message>
        <source>Go to strongest key</source>
        <translation>가장 강한 키로 이동</translation>
    </message>
    <message>
        <source>Switch head off or on</source>
        <translation>헤드 끄기/켜기</translation>
    </message>
    <message>
        <source>Switch all heads on</source>
        <translation>모든 헤드 켜기</translation>
    </message>
    <message>
        <source>Save mask</source>
        <translation>마스크 저장</translation>
    </message>
    <message>
        <source>Save mask file…</source>
        <translation>마스크 파일 저장…</translation>
    </message>
    <message>
        <source>Prune and save model…</source>
        <translation>모델 프루닝 및 저장…</translation>
    </message>
    <message>
        <source>Toggle pruned / full model</source>
        <translation>프루닝된 모델/전체 모델 전환</translation>
    </message>
    <message>
        <source>All heads in a table</source>
        <translation>표로 모든 헤드 보기</translation>
    </message>
    <message>
        <source>The heads are not measured yet</source>
        <translation>헤드를 아직 측정하지 않았습니다</translation>
    </message>
    <message>
        <source>Run model on this text</source>
        <translation>이 텍스트에 모델 실행</translation>
    </message>
    <message>
        <source>Run model on a text file…</source>
        <translation>텍스트 파일에 모델 실행…</translation>
    </message>
    <message>
        <source>Generate text…</source>
        <translation>텍스트 생성…</translation>
    </message>
    <message>
        <source>This model does not generate text</source>
        <translation>이 모델은 텍스트를 생성하지 않습니다</translation>
    </message>
    <message>
        <source>Compute attribution</source>
        <translation>기여도 분석 계산</translation>
    </message>
    <message>
        <source>Attribution needs tokens: this model reads images or sound</source>
        <translation>기여도 분석에는 토큰이 필요합니다: 이 모델은 이미지나 소리를 읽습니다</translation>
    </message>
    <message>
        <source>This model outputs hidden states: attribution needs logits</source>
        <translation>이 모델은 은닉 상태를 출력합니다: 기여도 분석에는 로짓이 필요합니다</translation>
    </message>
    <message>
        <source>This capture has streaming heads: attribution needs heads that see all keys</source>
        <translation>이 캡처에는 스트리밍 헤드가 있습니다: 기여도 분석에는 모든 키를 보는 헤드가 필요합니다</translation>
    </message>
    <message>
        <source>Stop attribution</source>
        <translation>기여도 분석 중지</translation>
    </message>
    <message>
        <source>Alt+.</source>
        <translation>Alt+.</translation>
    </message>
    <message>
        <source>No attribution is running</source>
        <translation>실행 중인 기여도 분석이 없습니다</translation>
    </message>
    <message>
        <source>Stop the model</source>
        <translation>모델 중지</translation>
    </message>
    <message>
        <source>Ctrl+.</source>
        <translation>Ctrl+.</translation>
    </message>
    <message>
        <source>Jobs…</source>
        <translation>작업…</translation>
    </message>
    <message>
        <source>Evaluate on dataset…</source>
        <translation>데이터셋으로 평가…</translation>
    </message>
    <message>
        <source>Evaluate on bundled reviews</source>
        <translation>기본 제공 리뷰로 평가</translation>
    </message>
    <message>
        <source>The bundled reviews do not fit this model</source>
        <translation>기본 제공 리뷰는 이 모델에 맞지 않습니다</translation>
    </message>
    <message>
        <source>Resume evaluation</source>
        <translation>평가 계속</translation>
    </message>
    <message>
        <source>No evaluation was stopped</source>
        <translation>중지된 평가가 없습니다</translation>
    </message>
    <message>
        <source>Compute head importance…</source>
        <translation>헤드 중요도 계산…</translation>
    </message>
    <message>
        <source>Compute pruning curve</source>
        <translation>프루닝 곡선 계산</translation>
    </message>
    <message>
        <source>Importance was computed on other data: compute it on this data first</source>
        <translation>중요도를 다른 데이터로 계산했습니다: 먼저 이 데이터로 계산하십시오</translation>
    </message>
    <message>
        <source>Patch heads between two texts…</source>
        <translation>두 텍스트 간 헤드 패칭…</translation>
    </message>
    <message>
        <source>Measure reach of outputs…</source>
        <translation>출력의 도달 범위 측정…</translation>
    </message>
    <message>
        <source>Save importance scores…</source>
        <translation>중요도 점수 저장…</translation>
    </message>
    <message>
        <source>Compare with…</source>
        <translation>비교 대상 선택…</translation>
    </message>
    <message>
        <source>Compare the bundled softmax and ymish models</source>
        <translation>기본 제공 softmax 모델과 ymish 모델 비교</translation>
    </message>
    <message>
        <source>Pair with the most similar head of B</source>
        <translation>B의 가장 비슷한 헤드와 짝짓기</translation>
    </message>
    <message>
        <source>Stop comparing</source>
        <translation>비교 끝내기</translation>
    </message>
    <message>
        <source>Copy comparison report command</source>
        <translation>비교 보고서 명령 복사</translation>
    </message>
    <message>
        <source>Copy command to run this study</source>
        <translation>이 스터디를 실행하는 명령 복사</translation>
    </message>
    <message>
        <source>All runs of this study are finished</source>
        <translation>이 스터디의 모든 실행이 끝났습니다</translation>
    </message>
    <message>
        <source>Open run output</source>
        <translation>실행 출력 열기</translation>
    </message>
    <message>
        <source>Choose a finished run first</source>
        <translation>먼저 끝난 실행을 선택하십시오</translation>
    </message>
    <message>
        <source>Close study</source>
        <translation>스터디 닫기</translation>
    </message>
    <message>
        <source>Search…</source>
        <translation>검색…</translation>
    </message>
    <message>
        <source>Ctrl+?</source>
        <translation>Ctrl+?</translation>
    </message>
    <message>
        <source>About this pane</source>
        <translation>이 패널 정보</translation>
    </message>
    <message>
        <source>Help topics</source>
        <translation>도움말 항목</translation>
    </message>
    <message>
        <source>User guide</source>
        <translation>사용 설명서</translation>
    </message>
    <message>
        <source>Show log folder</source>
        <translation>로그 폴더 표시</translation>
    </message>
    <message>
        <source>About hgviz</source>
        <translation>hgviz 정보</translation>
    </message>
    <message>
        <source>{output} (actual)</source>
        <translation>{output} (실제)</translation>
    </message>
    <message>
        <source>Computing attribution</source>
        <translation>기여도 분석 계산 중</translation>
    </message>
    <message>
        <source>The attributions sum to {total}; the output changes by {change}, from {start} to {end}. Completeness error {missing} with {steps}.</source>
        <translation>기여도 합은 {total}, 출력 변화는 {change}({start} → {end})입니다. 완전성 오차 {missing}, {steps}.</translation>
    </message>
    <message>
        <source>Similarity of two rankings of the keys: 1 identical, −1 reversed, 0 unrelated</source>
        <translation>두 키 순위의 유사도: 1은 동일, −1은 반대, 0은 무관</translation>
    </message>
    <message>
        <source>ρ = cov(r, r′) / (σ_r σ_r′)</source>
        <translation>ρ = cov(r, r′) / (σ_r σ_r′)</translation>
    </message>
    <message>
        <source>Spearman 1904; Jain and Wallace 2019</source>
        <translation>Spearman 1904; Jain and Wallace 2019</translation>
    </message>
    <message>
        <source>The part of the output's change from the baseline that passes through a head</source>
        <translation>기준선 대비 출력 변화 중 헤드를 거치는 부분</translation>
    </message>
    <message>
        <source>Σ_e ∫₀¹ ∂F / ∂h_e · dh_e</source>
        <translation>Σ_e ∫₀¹ ∂F / ∂h_e · dh_e</translation>
    </message>
    <message>
        <source>Dhamdhere et al. 2018</source>
        <translation>Dhamdhere et al. 2018</translation>
    </message>
    <message>
        <source>As many steps as a completeness error below 0.1 % needs, at most 4,096</source>
        <translation>완전성 오차가 0.1 % 미만이 되는 데 필요한 만큼의 스텝, 최대 4,096</translation>
    </message>
    <message>
        <source>The attributions should sum to the change of the output along the path</source>
        <translation>기여도의 합은 경로를 따른 출력 변화와 같아야 합니다</translation>
    </message>
    <message>
        <source>Sundararajan et al. 2017</source>
        <translation>Sundararajan et al. 2017</translation>
    </message>
    <message>
        <source>attention and gradient × attention: {value}</source>
        <translation>어텐션과 그래디언트 × 어텐션: {value}</translation>
    </message>
    <message>
        <source>attention and integrated gradients: {value}</source>
        <translation>어텐션과 적분 그래디언트: {value}</translation>
    </message>
    <message>
        <source>gradient × attention and integrated gradients: {value}</source>
        <translation>그래디언트 × 어텐션과 적분 그래디언트: {value}</translation>
    </message>
    <message>
        <source>{number} %</source>
        <translation>{number} %</translation>
    </message>
    <message>
        <source>less than 0.001 %</source>
        <translation>0.001 % 미만</translation>
    </message>
    <message>
        <source>step</source>
        <translation>스텝</translation>
    </message>
    <message>
        <source>More steps reduce it.</source>
        <translation>스텝이 많을수록 줄어듭니다.</translation>
    </message>
    <message>
        <source>Too few keys, or all values are equal: there are no ranks to compare.</source>
        <translation>키가 너무 적거나 모든 값이 같아 비교할 순위가 없습니다.</translation>
    </message>
    <message>
        <source>Spearman rank correlation of magnitudes over {keys}: {agreement}.</source>
        <translation>{keys}의 크기에 대한 스피어먼 순위 상관: {agreement}.</translation>
    </message>
    <message>
        <source>Attention</source>
        <translation>어텐션</translation>
    </message>
    <message>
        <source>Attention weight from the query to the key, as in the map</source>
        <translation>맵에서와 같은, 쿼리에서 키로 가는 어텐션 가중치</translation>
    </message>
    <message>
        <source>Vaswani et al. 2017</source>
        <translation>Vaswani et al. 2017</translation>
    </message>
    <message>
        <source>Gradient × attention</source>
        <translation>그래디언트 × 어텐션</translation>
    </message>
    <message>
        <source>The weight times the gradient of the output with respect to it</source>
        <translation>가중치와, 가중치에 대한 출력의 그래디언트의 곱</translation>
    </message>
    <message>
        <source>a_ij ∂F / ∂a_ij</source>
        <translation>a_ij ∂F / ∂a_ij</translation>
    </message>
    <message>
        <source>Chefer et al. 2021</source>
        <translation>Chefer et al. 2021</translation>
    </message>
    <message>
        <source>Integrated gradients</source>
        <translation>적분 그래디언트</translation>
    </message>
    <message>
        <source>What the key's tokens add to the output, computed with captum</source>
        <translation>키의 토큰이 출력에 더하는 양, captum으로 계산</translation>
    </message>
    <message>
        <source>Σ_e (x_e − x′_e) ∫₀¹ ∂F(x′ + t (x − x′)) / ∂x_e dt</source>
        <translation>Σ_e (x_e − x′_e) ∫₀¹ ∂F(x′ + t (x − x′)) / ∂x_e dt</translation>
    </message>
    <message>
        <source>blank tokens</source>
        <translation>빈 토큰</translation>
    </message>
    <message>
        <source>Baseline: a mask, padding or space token at every position</source>
        <translation>기준선: 모든 위치에 마스크, 패딩 또는 공백 토큰</translation>
    </message>
    <message>
        <source>mean embedding</source>
        <translation>평균 임베딩</translation>
    </message>
    <message>
        <source>Baseline: the average of all embeddings at every position</source>
        <translation>기준선: 모든 위치에 전체 임베딩의 평균</translation>
    </message>
    <message>
        <source>zero embedding</source>
        <translation>영 임베딩</translation>
    </message>
    <message>
        <source>Baseline: zeros; gradients vary more along the path</source>
        <translation>기준선: 0; 경로를 따라 그래디언트가 더 많이 변합니다</translation>
    </message>
    <message>
        <source>This query</source>
        <translation>이 쿼리</translation>
    </message>
    <message>
        <source>All queries</source>
        <translation>모든 쿼리</translation>
    </message>
    <message>
        <source>Conductance of each head</source>
        <translation>각 헤드의 컨덕턴스</translation>
    </message>
    <message>
        <source>Conductance of each head; right: integrated gradients of each layer</source>
        <translation>각 헤드의 컨덕턴스; 오른쪽: 각 레이어의 적분 그래디언트</translation>
    </message>
    <message>
        <source>No output to attribute yet</source>
        <translation>아직 기여도를 분석할 출력이 없습니다</translation>
    </message>
    <message>
        <source>Run a model on a text first.</source>
        <translation>먼저 텍스트에 모델을 실행하십시오.</translation>
    </message>
    <message>
        <source>This model outputs hidden states only</source>
        <translation>이 모델은 은닉 상태만 출력합니다</translation>
    </message>
    <message>
        <source>Attribution needs logits: open the classifier or language model.</source>
        <translation>기여도 분석에는 로짓이 필요합니다: 분류기나 언어 모델을 여십시오.</translation>
    </message>
    <message>
        <source>Attribution needs tokens</source>
        <translation>기여도 분석에는 토큰이 필요합니다</translation>
    </message>
    <message>
        <source>This model reads images or sound: see its maps in the other tabs.</source>
        <translation>이 모델은 이미지나 소리를 읽습니다: 맵은 다른 탭에서 볼 수 있습니다.</translation>
    </message>
    <message>
        <source>This capture has no output</source>
        <translation>이 캡처에는 출력이 없습니다</translation>
    </message>
    <message>
        <source>It was stopped before the model computed one.</source>
        <translation>모델이 출력을 계산하기 전에 중지되었습니다.</translation>
    </message>
    <message>
        <source>Attribution needs the model</source>
        <translation>기여도 분석에는 모델이 필요합니다</translation>
    </message>
    <message>
        <source>Open the checkpoint that this capture was made with.</source>
        <translation>이 캡처를 만든 체크포인트를 여십시오.</translation>
    </message>
    <message>
        <source>Compute attributes this output to tokens and heads.</source>
        <translation>‘계산’을 누르면 이 출력에 대한 토큰과 헤드의 기여도를 구합니다.</translation>
    </message>
    <message>
        <source>These results are for another output or path; Compute updates them.</source>
        <translation>이 결과는 다른 출력이나 경로의 것입니다. ‘계산’을 누르면 갱신됩니다.</translation>
    </message>
    <message>
        <source>Conductance</source>
        <translation>컨덕턴스</translation>
    </message>
    <message>
        <source>of the output</source>
        <translation>출력 기준</translation>
    </message>
    <message>
        <source>Attribution</source>
        <translation>기여도 분석</translation>
    </message>
    <message>
        <source>No attribution has been computed yet</source>
        <translation>아직 기여도 분석을 계산하지 않았습니다</translation>
    </message>
    <message>
        <source>Queries whose attention is compared</source>
        <translation>어텐션을 비교할 쿼리</translation>
    </message>
    <message>
        <source>Integration steps</source>
        <translation>적분 스텝</translation>
    </message>
    <message>
        <source>Auto</source>
        <translation>자동</translation>
    </message>
    <message>
        <source>Baseline</source>
        <translation>기준선</translation>
    </message>
    <message>
        <source>Compute</source>
        <translation>계산</translation>
    </message>
    <message>
        <source>Every key: attention, gradient times attention, attribution</source>
        <translation>모든 키: 어텐션, 그래디언트 × 어텐션, 기여도</translation>
    </message>
    <message>
        <source>Prediction of the model after “{token}”</source>
        <translation>“{token}” 다음에 대한 모델의 예측</translation>
    </message>
    <message>
        <source>conductance</source>
        <translation>컨덕턴스</translation>
    </message>
    <message>
        <source>Stop</source>
        <translation>중지</translation>
    </message>
    <message>
        <source>Label</source>
        <translation>레이블</translation>
    </message>
    <message>
        <source>Next token</source>
        <translation>다음 토큰</translation>
    </message>
    <message>
        <source>Masked token</source>
        <translation>마스크된 토큰</translation>
    </message>
    <message>
        <source>Class</source>
        <translation>클래스</translation>
    </message>
    <message>
        <source>Position</source>
        <translation>위치</translation>
    </message>
    <message>
        <source>Nearest text</source>
        <translation>가장 가까운 텍스트</translation>
    </message>
    <message>
        <source>{heads} off</source>
        <translation>{heads} 끔</translation>
    </message>
    <message>
        <source>No head off</source>
        <translation>꺼진 헤드 없음</translation>
    </message>
    <message>
        <source>space</source>
        <translation>공백</translation>
    </message>
    <message>
        <source>right</source>
        <translation>정답</translation>
    </message>
    <message>
        <source>wrong</source>
        <translation>오답</translation>
    </message>
    <message>
        <source>Context</source>
        <translation>문맥</translation>
    </message>
    <message>
        <source>Full model</source>
        <translation>전체 모델</translation>
    </message>
    <message>
        <source>Loss increase</source>
        <translation>손실 증가</translation>
    </message>
    <message>
        <source>Loss, bits</source>
        <translation>손실, 비트</translation>
    </message>
    <message>
        <source>Predictions that changed</source>
        <translation>바뀐 예측</translation>
    </message>
    <message>
        <source>It is a list of texts</source>
        <translation>텍스트 목록입니다</translation>
    </message>
    <message>
        <source>Return: open in Inspect; B: toggle pruned / full model</source>
        <translation>Return: 살펴보기에서 열기; B: 프루닝된 모델/전체 모델 전환</translation>
    </message>
    <message>
        <source>Wrong</source>
        <translation>오답</translation>
    </message>
    <message>
        <source>Predictions that are newly wrong, newly right, or both</source>
        <translation>새로 오답이 된 예측, 새로 정답이 된 예측 또는 둘 다</translation>
    </message>
    <message>
        <source>No prediction changed yet</source>
        <translation>아직 바뀐 예측이 없습니다</translation>
    </message>
    <message>
        <source>Choose data to evaluate the model on.</source>
        <translation>모델을 평가할 데이터를 선택하십시오.</translation>
    </message>
    <message>
        <source>Switch heads off to see which predictions change.</source>
        <translation>헤드를 끄면 어떤 예측이 바뀌는지 볼 수 있습니다.</translation>
    </message>
    <message>
        <source>Switch this head off</source>
        <translation>이 헤드 끄기</translation>
    </message>
    <message>
        <source>Resume</source>
        <translation>계속</translation>
    </message>
    <message>
        <source>Evaluation was stopped</source>
        <translation>평가가 중지되었습니다</translation>
    </message>
    <message>
        <source>Resume it to list the predictions.</source>
        <translation>계속하면 예측 목록이 표시됩니다.</translation>
    </message>
    <message>
        <source>Running…</source>
        <translation>실행 중…</translation>
    </message>
    <message>
        <source>Changes are listed once all texts are evaluated.</source>
        <translation>모든 텍스트를 평가하면 바뀐 예측이 표시됩니다.</translation>
    </message>
    <message>
        <source>The model predicts the same on all texts.</source>
        <translation>모든 텍스트에서 모델의 예측이 같습니다.</translation>
    </message>
    <message>
        <source>No prediction changed</source>
        <translation>바뀐 예측이 없습니다</translation>
    </message>
    <message>
        <source>{n:,} with the largest loss increase</source>
        <translation>손실 증가가 가장 큰 {n:,}개</translation>
    </message>
    <message>
        <source>Predictions that changed: {n:,}</source>
        <translation>바뀐 예측: {n:,}개</translation>
    </message>
    <message>
        <source>not significant</source>
        <translation>유의하지 않음</translation>
    </message>
    <message>
        <source>All</source>
        <translation>전체</translation>
    </message>
    <message>
        <source>Length</source>
        <translation>길이</translation>
    </message>
    <message>
        <source>Change, points</source>
        <translation>변화, %p</translation>
    </message>
    <message>
        <source>Change, bits</source>
        <translation>변화, 비트</translation>
    </message>
    <message>
        <source>no interval for 1 text</source>
        <translation>텍스트 1개에는 구간이 없음</translation>
    </message>
    <message>
        <source>{least} to {most}</source>
        <translation>{least}~{most}</translation>
    </message>
    <message>
        <source>{noun}s</source>
        <translation>{noun}</translation>
    </message>
    <message>
        <source>Part</source>
        <translation>구분</translation>
    </message>
    <message>
        <source>Slice</source>
        <translation>슬라이스</translation>
    </message>
    <message>
        <source>95 % interval</source>
        <translation>95 % 구간</translation>
    </message>
    <message>
        <source>worse  ·  better</source>
        <translation>악화  ·  개선</translation>
    </message>
    <message>
        <source>{name}: none evaluated yet</source>
        <translation>{name}: 아직 평가되지 않음</translation>
    </message>
    <message>
        <source>{name}: {n:,} of {total:,}</source>
        <translation>{name}: {total:,}개 중 {n:,}개</translation>
    </message>
    <message>
        <source>right, full model: {share}</source>
        <translation>정답, 전체 모델: {share}</translation>
    </message>
    <message>
        <source>right, heads off: {share}</source>
        <translation>정답, 헤드 끔: {share}</translation>
    </message>
    <message>
        <source>{lost:,} newly wrong, {won:,} newly right</source>
        <translation>새 오답 {lost:,}개, 새 정답 {won:,}개</translation>
    </message>
    <message>
        <source>loss: {full:.3f} → {pruned:.3f} bits</source>
        <translation>손실: {full:.3f} → {pruned:.3f}비트</translation>
    </message>
    <message>
        <source>Classes and slices</source>
        <translation>클래스와 슬라이스</translation>
    </message>
    <message>
        <source>Copy its values as a table instead</source>
        <translation>대신 값을 표로 복사하십시오</translation>
    </message>
    <message>
        <source>intervals are per slice, not simultaneous; click a title to sort</source>
        <translation>구간은 동시 구간이 아니라 슬라이스별 구간; 제목을 클릭하면 정렬</translation>
    </message>
    <message>
        <source>Loss</source>
        <translation>손실</translation>
    </message>
    <message>
        <source>Results appear as they are computed.</source>
        <translation>결과는 계산되는 대로 나타납니다.</translation>
    </message>
    <message>
        <source>Choose data to compare classes and slices</source>
        <translation>클래스와 슬라이스를 비교할 데이터를 선택하십시오</translation>
    </message>
    <message>
        <source>Each is listed with its 95 % interval.</source>
        <translation>각각 95 % 구간과 함께 표시됩니다.</translation>
    </message>
    <message>
        <source>Classes and slices: {n}</source>
        <translation>클래스와 슬라이스: {n}개</translation>
    </message>
    <message>
        <source>{part} %</source>
        <translation>{part} %</translation>
    </message>
    <message>
        <source>Study files (*.toml);;All files (*)</source>
        <translation>스터디 파일 (*.toml);;모든 파일 (*)</translation>
    </message>
    <message>
        <source>Open a checkpoint, capture, study or session</source>
        <translation>체크포인트, 캡처, 스터디 또는 세션 열기</translation>
    </message>
    <message>
        <source>Open a checkpoint folder</source>
        <translation>체크포인트 폴더 열기</translation>
    </message>
    <message>
        <source>Open a study file</source>
        <translation>스터디 파일 열기</translation>
    </message>
    <message>
        <source>Cancelled: another model was opened in the meantime</source>
        <translation>취소되었습니다: 그사이에 다른 모델을 열었습니다</translation>
    </message>
    <message>
        <source>Evaluating B</source>
        <translation>B 평가 중</translation>
    </message>
    <message>
        <source>B was not evaluated: {why}</source>
        <translation>B를 평가하지 못했습니다: {why}</translation>
    </message>
    <message>
        <source>Copied: {command}</source>
        <translation>복사했습니다: {command}</translation>
    </message>
    <message>
        <source>Open the model for {file} first, then open {file} again.</source>
        <translation>먼저 {file} 파일에 맞는 모델을 연 다음 {file} 파일을 다시 여십시오.</translation>
    </message>
    <message>
        <source>Open a checkpoint folder…</source>
        <translation>체크포인트 폴더 열기…</translation>
    </message>
    <message>
        <source>No model is open</source>
        <translation>열린 모델이 없습니다</translation>
    </message>
    <message>
        <source>Run on each line as a text…</source>
        <translation>각 줄을 텍스트로 하여 실행…</translation>
    </message>
    <message>
        <source>Run {model} on this text</source>
        <translation>이 텍스트에 {model} 실행</translation>
    </message>
    <message>
        <source>Choose another file…</source>
        <translation>다른 파일 선택…</translation>
    </message>
    <message>
        <source>Opening a text</source>
        <translation>텍스트 여는 중</translation>
    </message>
    <message>
        <source>Not opened: {files}</source>
        <translation>열지 않았습니다: {files}</translation>
    </message>
    <message>
        <source>{file} contains token IDs: open their model first</source>
        <translation>{file} 파일에는 토큰 ID가 들어 있습니다: 먼저 해당 모델을 여십시오</translation>
    </message>
    <message>
        <source>ids</source>
        <translation>ids</translation>
    </message>
    <message>
        <source>{files}: unsupported file type (supported: {kinds})</source>
        <translation>{files}: 지원하지 않는 파일 형식입니다(지원 형식: {kinds})</translation>
    </message>
    <message>
        <source>models, captures, studies, sessions, texts</source>
        <translation>모델, 캡처, 스터디, 세션, 텍스트</translation>
    </message>
    <message>
        <source>Save capture</source>
        <translation>캡처 저장</translation>
    </message>
    <message>
        <source>Save comparison capture</source>
        <translation>비교 캡처 저장</translation>
    </message>
    <message>
        <source>Saved {path}</source>
        <translation>저장했습니다: {path}</translation>
    </message>
    <message>
        <source>Sessions (*{ending})</source>
        <translation>세션 (*{ending})</translation>
    </message>
    <message>
        <source>Settings could not be saved: {why}</source>
        <translation>설정을 저장하지 못했습니다: {why}</translation>
    </message>
    <message>
        <source>The interface scale is already {scale}</source>
        <translation>화면 배율이 이미 {scale}입니다</translation>
    </message>
    <message>
        <source>Interface scale {scale}</source>
        <translation>화면 배율 {scale}</translation>
    </message>
    <message>
        <source>hgviz restarts to apply it and reopens what is open.</source>
        <translation>적용하기 위해 hgviz를 다시 시작하며, 열려 있는 항목은 다시 열립니다.</translation>
    </message>
    <message>
        <source>Later</source>
        <translation>나중에</translation>
    </message>
    <message>
        <source>Restart now</source>
        <translation>지금 다시 시작</translation>
    </message>
    <message>
        <source>Quit without saving</source>
        <translation>저장하지 않고 종료</translation>
    </message>
    <message>
        <source>Save scores…</source>
        <translation>점수 저장…</translation>
    </message>
    <message>
        <source>Unsaved work</source>
        <translation>저장하지 않은 작업</translation>
    </message>
    <message>
        <source>Finding the strongest key</source>
        <translation>가장 강한 키 찾는 중</translation>
    </message>
    <message>
        <source>Running the model on {tokens:,} tokens takes about {time} and {size} of memory. Finished layers are kept if you stop.</source>
        <translation>토큰 {tokens:,}개로 모델을 실행하려면 시간 약 {time}, 메모리 {size} 정도가 필요합니다. 중지해도 끝난 레이어는 유지됩니다.</translation>
    </message>
    <message>
        <source>Run anyway</source>
        <translation>그래도 실행</translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation>취소</translation>
    </message>
    <message>
        <source>Long text</source>
        <translation>긴 텍스트</translation>
    </message>
    <message>
        <source>Undone: {step}</source>
        <translation>실행 취소함: {step}</translation>
    </message>
    <message>
        <source>Redone: {step}</source>
        <translation>다시 실행함: {step}</translation>
    </message>
    <message>
        <source>Choose a text file</source>
        <translation>텍스트 파일 선택</translation>
    </message>
    <message>
        <source>Save importance scores</source>
        <translation>중요도 점수 저장</translation>
    </message>
    <message>
        <source>Studies (*.h5)</source>
        <translation>스터디 (*.h5)</translation>
    </message>
    <message>
        <source>Save mask file</source>
        <translation>마스크 파일 저장</translation>
    </message>
    <message>
        <source>Mask files (*.json)</source>
        <translation>마스크 파일 (*.json)</translation>
    </message>
    <message>
        <source>Open a changed prediction on the Prune page first</source>
        <translation>먼저 프루닝 페이지에서 바뀐 예측을 여십시오</translation>
    </message>
    <message>
        <source>Show study</source>
        <translation>스터디 표시</translation>
    </message>
    <message>
        <source>No head of B can be compared with head {head}</source>
        <translation>헤드 {head}: B에 비교할 수 있는 헤드가 없습니다</translation>
    </message>
    <message>
        <source>Head {other} of B is most similar to head {head} of A: distance {distance}</source>
        <translation>A의 헤드 {head}: B에서 가장 비슷한 헤드는 {other}, 거리 {distance}</translation>
    </message>
    <message>
        <source>Finding the most similar head</source>
        <translation>가장 비슷한 헤드 찾는 중</translation>
    </message>
    <message>
        <source>Compare with a checkpoint folder</source>
        <translation>비교할 체크포인트 폴더 선택</translation>
    </message>
    <message>
        <source>Compare with a checkpoint or capture</source>
        <translation>비교할 체크포인트 또는 캡처 선택</translation>
    </message>
    <message>
        <source>The log is in {folder}</source>
        <translation>로그가 있는 폴더: {folder}</translation>
    </message>
    <message>
        <source>The log folder is {folder}</source>
        <translation>로그 폴더: {folder}</translation>
    </message>
    <message>
        <source>Choose a file…</source>
        <translation>파일 선택…</translation>
    </message>
    <message>
        <source>nothing to compare</source>
        <translation>비교할 것 없음</translation>
    </message>
    <message>
        <source>not in {side}</source>
        <translation>{side}에 없음</translation>
    </message>
    <message>
        <source>masked</source>
        <translation>마스크됨</translation>
    </message>
    <message>
        <source>off</source>
        <translation>꺼짐</translation>
    </message>
    <message>
        <source>Difference</source>
        <translation>차이</translation>
    </message>
    <message>
        <source>Query</source>
        <translation>쿼리</translation>
    </message>
    <message>
        <source>Query text</source>
        <translation>쿼리 텍스트</translation>
    </message>
    <message>
        <source>Key</source>
        <translation>키</translation>
    </message>
    <message>
        <source>Key text</source>
        <translation>키 텍스트</translation>
    </message>
    <message>
        <source>Choose a second model</source>
        <translation>두 번째 모델 선택</translation>
    </message>
    <message>
        <source>Compare with another model, activation function or input to see both maps and their difference.</source>
        <translation>다른 모델, 활성화 함수 또는 입력과 비교하면 두 맵과 그 차이를 볼 수 있습니다.</translation>
    </message>
    <message>
        <source>Compare the bundled pair</source>
        <translation>기본 제공 모델 쌍 비교</translation>
    </message>
    <message>
        <source>B is not ready</source>
        <translation>B가 아직 준비되지 않았습니다</translation>
    </message>
    <message>
        <source>Side by side</source>
        <translation>나란히</translation>
    </message>
    <message>
        <source>Blink</source>
        <translation>번갈아</translation>
    </message>
    <message>
        <source>A and B side by side, or alternating in one place</source>
        <translation>A와 B를 나란히 또는 한자리에서 번갈아 표시</translation>
    </message>
    <message>
        <source>Fit maps to pane (F)</source>
        <translation>맵을 패널에 맞추기 (F)</translation>
    </message>
    <message>
        <source>Weight in A minus weight in B</source>
        <translation>A의 가중치 빼기 B의 가중치</translation>
    </message>
    <message>
        <source>a_ij − b_ij</source>
        <translation>a_ij − b_ij</translation>
    </message>
    <message>
        <source>Head {head}</source>
        <translation>헤드 {head}</translation>
    </message>
    <message>
        <source>Heads {head} and {other}</source>
        <translation>헤드 {head}, {other}</translation>
    </message>
    <message>
        <source>red: {a} higher, blue: {b} higher</source>
        <translation>빨강: {a} 더 높음, 파랑: {b} 더 높음</translation>
    </message>
    <message>
        <source>both upsampled to {units}</source>
        <translation>둘 다 {units} 단위로 업샘플링됨</translation>
    </message>
    <message>
        <source>hatched: not in both</source>
        <translation>빗금: 한쪽에만 있음</translation>
    </message>
    <message>
        <source>self-attention heads</source>
        <translation>셀프 어텐션 헤드</translation>
    </message>
    <message>
        <source>cross-attention heads</source>
        <translation>크로스 어텐션 헤드</translation>
    </message>
    <message>
        <source>{side} has no such head.</source>
        <translation>{side}에 해당 헤드가 없습니다.</translation>
    </message>
    <message>
        <source>{side}, head {head}: {value}.</source>
        <translation>{side}, 헤드 {head}: {value}.</translation>
    </message>
    <message>
        <source>rank {rank:,} of {count:,}, largest first</source>
        <translation>{count:,}개 중 {rank:,}위(큰 순)</translation>
    </message>
    <message>
        <source>Head metrics</source>
        <translation>헤드 지표</translation>
    </message>
    <message>
        <source>The metrics of all heads have a figure</source>
        <translation>모든 헤드의 지표에는 그림이 있습니다</translation>
    </message>
    <message>
        <source>Metrics of A and B</source>
        <translation>A와 B의 지표</translation>
    </message>
    <message>
        <source>Choose what to compare with to see them.</source>
        <translation>비교 대상을 선택하면 표시됩니다.</translation>
    </message>
    <message>
        <source>head {head}</source>
        <translation>헤드 {head}</translation>
    </message>
    <message>
        <source>{a:,} and {b:,}</source>
        <translation>{a:,}개, {b:,}개</translation>
    </message>
    <message>
        <source>{a} and {b}</source>
        <translation>{a}, {b}</translation>
    </message>
    <message>
        <source>heads between levels</source>
        <translation>단계 사이의 헤드</translation>
    </message>
    <message>
        <source>grey: all {many} {kind}; dot: {dots}; A above, B below</source>
        <translation>회색: 모든 {kind}({many}); 점: {dots}; A는 위, B는 아래</translation>
    </message>
    <message>
        <source>Computing head metrics</source>
        <translation>헤드 지표 계산 중</translation>
    </message>
    <message>
        <source>there is no such head</source>
        <translation>해당 헤드가 없음</translation>
    </message>
    <message>
        <source>nothing to subtract</source>
        <translation>뺄 것 없음</translation>
    </message>
    <message>
        <source>no shared tokens</source>
        <translation>공통 토큰 없음</translation>
    </message>
    <message>
        <source>only one side has this row</source>
        <translation>이 행은 한쪽에만 있음</translation>
    </message>
    <message>
        <source>{query} {side}: {row}.</source>
        <translation>{query}, {side}: {row}.</translation>
    </message>
    <message>
        <source>B has no such head.</source>
        <translation>B에는 해당 헤드가 없습니다.</translation>
    </message>
    <message>
        <source>B has no such row.</source>
        <translation>B에는 해당 행이 없습니다.</translation>
    </message>
    <message>
        <source>{row}; {value} on {key}</source>
        <translation>{row}; {key}에 {value}</translation>
    </message>
    <message>
        <source>{side}: {row}.</source>
        <translation>{side}: {row}.</translation>
    </message>
    <message>
        <source>no weight</source>
        <translation>가중치 없음</translation>
    </message>
    <message>
        <source>{share} of the weight on {key}</source>
        <translation>{key}에 가중치의 {share}</translation>
    </message>
    <message>
        <source>spread over about {many}, {share} on {key}</source>
        <translation>약 {many}에 분산, {key}에 {share}</translation>
    </message>
    <message>
        <source>{row}, {below} of the mass negative</source>
        <translation>{row}, 음수 비중 {below}</translation>
    </message>
    <message>
        <source>{key} in {word}</source>
        <translation>{word} 안의 {key}</translation>
    </message>
    <message>
        <source>{key} after {word}</source>
        <translation>{word} 뒤의 {key}</translation>
    </message>
    <message>
        <source>{bits} bits per byte</source>
        <translation>바이트당 {bits}비트</translation>
    </message>
    <message>
        <source>{side} has no logits</source>
        <translation>{side}에 로짓 없음</translation>
    </message>
    <message>
        <source>This text: {answers}</source>
        <translation>이 텍스트: {answers}</translation>
    </message>
    <message>
        <source>{n} of {a} in A and {b} in B; hatched: in one only</source>
        <translation>A의 {a}, B의 {b} 중 {n}; 빗금: 한쪽에만 있음</translation>
    </message>
    <message>
        <source>A has {a}, B {b}, and none in common</source>
        <translation>A {a}, B {b}, 공통 없음</translation>
    </message>
    <message>
        <source>shared token</source>
        <translation>공통 토큰</translation>
    </message>
    <message>
        <source>Text of A and B</source>
        <translation>A와 B의 텍스트</translation>
    </message>
    <message>
        <source>The maps have figures</source>
        <translation>맵에는 그림이 있습니다</translation>
    </message>
    <message>
        <source>Choose what to compare with to see it.</source>
        <translation>비교 대상을 선택하면 표시됩니다.</translation>
    </message>
    <message>
        <source>Text with the weights of A, of B, and their difference</source>
        <translation>A의 가중치, B의 가중치, 그 차이를 표시한 텍스트</translation>
    </message>
    <message>
        <source>In words</source>
        <translation>문장으로</translation>
    </message>
    <message>
        <source>Reading the text’s weights</source>
        <translation>텍스트의 가중치 읽는 중</translation>
    </message>
    <message>
        <source>attention of the selected {unit}</source>
        <translation>선택한 {unit}의 어텐션</translation>
    </message>
    <message>
        <source>Bits per byte: mean loss of the next byte; lower is better</source>
        <translation>바이트당 비트: 다음 바이트의 평균 손실; 낮을수록 좋음</translation>
    </message>
    <message>
        <source>−Σ_t log₂ P(x_t | x_&lt;t) / bytes</source>
        <translation>−Σ_t log₂ P(x_t | x_&lt;t) / bytes</translation>
    </message>
    <message>
        <source>This layer is not captured yet.</source>
        <translation>이 레이어는 아직 캡처되지 않았습니다.</translation>
    </message>
    <message>
        <source>Click a {unit} to see what it attends to in A and B.</source>
        <translation>{unit} 하나를 클릭하면 A와 B에서 무엇에 주목하는지 볼 수 있습니다.</translation>
    </message>
    <message>
        <source>Close</source>
        <translation>닫기</translation>
    </message>
    <message>
        <source>Copy details</source>
        <translation>세부 정보 복사</translation>
    </message>
    <message>
        <source>Details</source>
        <translation>세부 정보</translation>
    </message>
    <message>
        <source>Attention maps of transformers, at every resolution</source>
        <translation>모든 해상도 단계의 트랜스포머 어텐션 맵</translation>
    </message>
    <message>
        <source>MIT licence. Qt is used under the LGPL, version 3.</source>
        <translation>MIT 라이선스. Qt는 LGPL 버전 3에 따라 사용됩니다.</translation>
    </message>
    <message>
        <source>The sample Hourglass was trained on WikiText-2, which is CC BY-SA.</source>
        <translation>샘플 Hourglass는 CC BY-SA로 배포되는 WikiText-2로 학습했습니다.</translation>
    </message>
    <message>
        <source>Licences</source>
        <translation>라이선스</translation>
    </message>
    <message>
        <source>The licence texts are in {folder}</source>
        <translation>라이선스 전문이 있는 폴더: {folder}</translation>
    </message>
    <message>
        <source>Target</source>
        <translation>대상문</translation>
    </message>
    <message>
        <source>Second text (optional)</source>
        <translation>두 번째 텍스트(선택 사항)</translation>
    </message>
    <message>
        <source>The encoder reads the source, the decoder reads the target.</source>
        <translation>인코더는 원문을, 디코더는 대상문을 읽습니다.</translation>
    </message>
    <message>
        <source>Input text</source>
        <translation>입력 텍스트</translation>
    </message>
    <message>
        <source>Second text</source>
        <translation>두 번째 텍스트</translation>
    </message>
    <message>
        <source>Source</source>
        <translation>원문</translation>
    </message>
    <message>
        <source>Clear</source>
        <translation>지우기</translation>
    </message>
    <message>
        <source>Clear the text to type another one</source>
        <translation>텍스트를 지우고 새로 입력</translation>
    </message>
    <message>
        <source>Token IDs from file…</source>
        <translation>파일의 토큰 ID…</translation>
    </message>
    <message>
        <source>A JSON file with input_ids, as hgviz capture --ids reads it</source>
        <translation>hgviz capture --ids로 읽는 것과 같은, input_ids가 있는 JSON 파일</translation>
    </message>
    <message>
        <source>Run model</source>
        <translation>모델 실행</translation>
    </message>
    <message>
        <source>{count}; only the beginning is shown</source>
        <translation>{count}; 앞부분만 표시됨</translation>
    </message>
    <message>
        <source>The target is empty</source>
        <translation>대상문이 비어 있습니다</translation>
    </message>
    <message>
        <source>The text is empty</source>
        <translation>텍스트가 비어 있습니다</translation>
    </message>
    <message>
        <source>source {source}, target {target}</source>
        <translation>원문 {source}, 대상문 {target}</translation>
    </message>
    <message>
        <source>{length:,} of {most}: {over:,} too many</source>
        <translation>{length:,}개(최대 {most}): {over:,}개 초과</translation>
    </message>
    <message>
        <source>{length:,} of {most}</source>
        <translation>{length:,}개(최대 {most})</translation>
    </message>
    <message>
        <source>softmax of the top {count}</source>
        <translation>상위 {count}개의 softmax</translation>
    </message>
    <message>
        <source>Six, split across heads</source>
        <translation>여섯 가지, 헤드별로 나눔</translation>
    </message>
    <message>
        <source>{name} keeps its weights and is not retrained.</source>
        <translation>{name}: 가중치를 유지하며 다시 학습하지 않습니다.</translation>
    </message>
    <message>
        <source>Replace activation function</source>
        <translation>활성화 함수 바꾸기</translation>
    </message>
    <message>
        <source>Original</source>
        <translation>원래 함수</translation>
    </message>
    <message>
        <source>Activation</source>
        <translation>활성화 함수</translation>
    </message>
    <message>
        <source>Open</source>
        <translation>열기</translation>
    </message>
    <message>
        <source>Greedy</source>
        <translation>탐욕적</translation>
    </message>
    <message>
        <source>Random</source>
        <translation>무작위</translation>
    </message>
    <message>
        <source>Continues the text. Stop keeps the text generated so far.</source>
        <translation>텍스트를 이어서 생성합니다. 중지해도 그때까지 생성한 텍스트는 유지됩니다.</translation>
    </message>
    <message>
        <source>Generate text</source>
        <translation>텍스트 생성</translation>
    </message>
    <message>
        <source>Below 1 favours likely tokens, above 1 is more random</source>
        <translation>1보다 작으면 가능성 높은 토큰을 선호하고, 1보다 크면 더 무작위적입니다</translation>
    </message>
    <message>
        <source>The same seed gives the same text</source>
        <translation>같은 시드는 같은 텍스트를 생성합니다</translation>
    </message>
    <message>
        <source>Sampling</source>
        <translation>샘플링</translation>
    </message>
    <message>
        <source>Temperature</source>
        <translation>온도</translation>
    </message>
    <message>
        <source>Seed</source>
        <translation>시드</translation>
    </message>
    <message>
        <source>The model has room for {tokens} more.</source>
        <translation>모델에 더 들어갈 수 있는 양: {tokens}.</translation>
    </message>
    <message>
        <source>Generate</source>
        <translation>생성</translation>
    </message>
    <message>
        <source>The text already has the maximum length.</source>
        <translation>텍스트가 이미 최대 길이입니다.</translation>
    </message>
    <message>
        <source>Predicted loss change, from gradients</source>
        <translation>예측 손실 변화, 그래디언트로 계산</translation>
    </message>
    <message>
        <source>Exact loss change, one head off at a time</source>
        <translation>정확한 손실 변화, 한 번에 헤드 하나씩 끔</translation>
    </message>
    <message>
        <source>Sensitivity per token</source>
        <translation>토큰당 민감도</translation>
    </message>
    <message>
        <source>Loss change with only this head on in its layer</source>
        <translation>해당 레이어에서 이 헤드만 켰을 때의 손실 변화</translation>
    </message>
    <message>
        <source>Shapley values, 20 random orders</source>
        <translation>섀플리 값, 무작위 순서 20개</translation>
    </message>
    <message>
        <source>about {time}</source>
        <translation>약 {time}</translation>
    </message>
    <message>
        <source>about {n:,} evaluations</source>
        <translation>평가 약 {n:,}회</translation>
    </message>
    <message>
        <source>Gradient scores are undefined for this model: it outputs hidden states, whose distance from the baseline has no gradient at the baseline.</source>
        <translation>이 모델에서는 그래디언트 점수가 정의되지 않습니다: 이 모델은 은닉 상태를 출력하며, 기준선과의 거리는 기준선에서 그래디언트가 없습니다.</translation>
    </message>
    <message>
        <source>Replaces the context of each head on one text by its context on the other. The cells show how much of the logit difference between the two answers is restored or lost.</source>
        <translation>한 텍스트에서 각 헤드의 문맥을 다른 텍스트의 문맥으로 바꿉니다. 각 칸은 두 답의 로짓 차이가 얼마나 복원되거나 사라지는지 보여 줍니다.</translation>
    </message>
    <message>
        <source>Clean text</source>
        <translation>정상 텍스트</translation>
    </message>
    <message>
        <source>The sea is at the …</source>
        <translation>The sea is at the …</translation>
    </message>
    <message>
        <source>Corrupted text</source>
        <translation>손상 텍스트</translation>
    </message>
    <message>
        <source>A text with as many tokens</source>
        <translation>토큰 수가 같은 텍스트</translation>
    </message>
    <message>
        <source>Answer</source>
        <translation>답</translation>
    </message>
    <message>
        <source>Correct token or class of the clean text</source>
        <translation>정상 텍스트의 올바른 토큰 또는 클래스</translation>
    </message>
    <message>
        <source>Wrong answer</source>
        <translation>틀린 답</translation>
    </message>
    <message>
        <source>Token or class to compare it with</source>
        <translation>비교할 토큰 또는 클래스</translation>
    </message>
    <message>
        <source>Results appear as they are computed. Stop keeps the results so far.</source>
        <translation>결과는 계산되는 대로 나타납니다. 중지해도 그때까지의 결과는 유지됩니다.</translation>
    </message>
    <message>
        <source>Compute head importance</source>
        <translation>헤드 중요도 계산</translation>
    </message>
    <message>
        <source>undefined here</source>
        <translation>정의되지 않음</translation>
    </message>
    <message>
        <source>measured</source>
        <translation>측정됨</translation>
    </message>
    <message>
        <source>Then compute the pruning curve</source>
        <translation>이어서 프루닝 곡선 계산</translation>
    </message>
    <message>
        <source>Choose a score.</source>
        <translation>점수를 선택하십시오.</translation>
    </message>
    <message>
        <source>Patch heads between two texts</source>
        <translation>두 텍스트 간 헤드 패칭</translation>
    </message>
    <message>
        <source>Patch</source>
        <translation>패칭</translation>
    </message>
    <message>
        <source>Fill in all four fields.</source>
        <translation>네 항목을 모두 입력하십시오.</translation>
    </message>
    <message>
        <source>The labels in {file} are not classes of the model.</source>
        <translation>{file} 파일의 레이블은 모델의 클래스가 아닙니다.</translation>
    </message>
    <message>
        <source>Assign labels to classes</source>
        <translation>레이블을 클래스에 지정</translation>
    </message>
    <message>
        <source>Use these classes</source>
        <translation>이 클래스 사용</translation>
    </message>
    <message>
        <source>Choose a class for {labels}.</source>
        <translation>클래스를 선택해야 할 레이블: {labels}.</translation>
    </message>
    <message>
        <source>GPU (Apple)</source>
        <translation>GPU (Apple)</translation>
    </message>
    <message>
        <source>Light</source>
        <translation>밝게</translation>
    </message>
    <message>
        <source>Dark</source>
        <translation>어둡게</translation>
    </message>
    <message>
        <source>Hidden</source>
        <translation>숨김</translation>
    </message>
    <message>
        <source>Preferences</source>
        <translation>환경설정</translation>
    </message>
    <message>
        <source>Reset to defaults</source>
        <translation>기본값으로 초기화</translation>
    </message>
    <message>
        <source>Captures (*.h5)</source>
        <translation>캡처 (*.h5)</translation>
    </message>
    <message>
        <source>Choose a file of token IDs</source>
        <translation>토큰 ID 파일 선택</translation>
    </message>
    <message>
        <source>Token IDs (*.json);;All files (*)</source>
        <translation>토큰 ID (*.json);;모든 파일 (*)</translation>
    </message>
    <message>
        <source>Choose an image</source>
        <translation>이미지 선택</translation>
    </message>
    <message>
        <source>Images ({endings});;All files (*)</source>
        <translation>이미지 ({endings});;모든 파일 (*)</translation>
    </message>
    <message>
        <source>Choose a sound file</source>
        <translation>소리 파일 선택</translation>
    </message>
    <message>
        <source>Sounds ({endings});;All files (*)</source>
        <translation>소리 ({endings});;모든 파일 (*)</translation>
    </message>
    <message>
        <source>Look in:</source>
        <translation>찾는 위치:</translation>
    </message>
    <message>
        <source>Files of type:</source>
        <translation>파일 형식:</translation>
    </message>
    <message>
        <source>Attribution to tokens</source>
        <translation>토큰에 대한 기여도 분석</translation>
    </message>
    <message>
        <source>Attribution to layers</source>
        <translation>레이어에 대한 기여도 분석</translation>
    </message>
    <message>
        <source>Attribution to heads</source>
        <translation>헤드에 대한 기여도 분석</translation>
    </message>
    <message>
        <source>Attribution to the keys of a head</source>
        <translation>헤드의 키에 대한 기여도 분석</translation>
    </message>
    <message>
        <source>Reading the attribution</source>
        <translation>기여도 분석 읽는 중</translation>
    </message>
    <message>
        <source>Give the figure another name</source>
        <translation>그림에 다른 이름을 지정하십시오</translation>
    </message>
    <message>
        <source>Capture | Study | Sweep</source>
        <translation>Capture | Study | Sweep</translation>
    </message>
    <message>
        <source>save the capture under that name first (Ctrl+S)</source>
        <translation>먼저 그 이름으로 캡처를 저장하십시오(Ctrl+S)</translation>
    </message>
    <message>
        <source>save B under that name first (File, Save comparison capture…)</source>
        <translation>먼저 그 이름으로 B를 저장하십시오(파일 &gt; 비교 캡처 저장…)</translation>
    </message>
    <message>
        <source>save the importance scores under that name first (Analyse)</source>
        <translation>먼저 그 이름으로 중요도 점수를 저장하십시오(분석 메뉴)</translation>
    </message>
    <message>
        <source>compute attribution first</source>
        <translation>먼저 기여도 분석을 계산하십시오</translation>
    </message>
    <message>
        <source>compute head importance on the Prune page first</source>
        <translation>먼저 프루닝 페이지에서 헤드 중요도를 계산하십시오</translation>
    </message>
    <message>
        <source>compute the pruning curve on the Prune page first</source>
        <translation>먼저 프루닝 페이지에서 프루닝 곡선을 계산하십시오</translation>
    </message>
    <message>
        <source>finish some runs of the study first</source>
        <translation>먼저 스터디의 실행을 몇 개 끝내십시오</translation>
    </message>
    <message>
        <source>run a model on a text first</source>
        <translation>먼저 텍스트에 모델을 실행하십시오</translation>
    </message>
    <message>
        <source>choose what to compare with first</source>
        <translation>먼저 비교 대상을 선택하십시오</translation>
    </message>
    <message>
        <source>it reads {name}: {how}</source>
        <translation>{name} 파일을 읽습니다: {how}</translation>
    </message>
    <message>
        <source>Preview</source>
        <translation>미리 보기</translation>
    </message>
    <message>
        <source>Preview of the figure</source>
        <translation>그림 미리 보기</translation>
    </message>
    <message>
        <source>{name} is not available yet</source>
        <translation>{name}: 아직 사용할 수 없습니다</translation>
    </message>
    <message>
        <source>Vector graphics with embedded fonts, for LaTeX, Word and journals.</source>
        <translation>글꼴이 포함된 벡터 그래픽. LaTeX, Word, 학술지용.</translation>
    </message>
    <message>
        <source>Vector graphics with editable text, for web pages, Inkscape and Illustrator.</source>
        <translation>텍스트를 편집할 수 있는 벡터 그래픽. 웹 페이지, Inkscape, Illustrator용.</translation>
    </message>
    <message>
        <source>Pixels, for slides, e-mail and programs without vector graphics.</source>
        <translation>픽셀 이미지. 슬라이드, 전자 메일, 벡터 그래픽을 지원하지 않는 프로그램용.</translation>
    </message>
    <message>
        <source>LaTeX code: \input sets its text in the font of the paper.</source>
        <translation>LaTeX 코드: \input으로 넣으면 텍스트가 논문의 글꼴로 조판됩니다.</translation>
    </message>
    <message>
        <source>smallest text {n} pt</source>
        <translation>가장 작은 글자 {n} pt</translation>
    </message>
    <message>
        <source>The smallest text is {n:.3g} pt; journals require at least {least:g} pt. Choose a wider figure.</source>
        <translation>가장 작은 글자가 {n:.3g} pt입니다. 학술지는 {least:g} pt 이상을 요구합니다. 더 넓은 그림을 선택하십시오.</translation>
    </message>
    <message>
        <source>up to {n:g}</source>
        <translation>최대 {n:g}</translation>
    </message>
    <message>
        <source>Copied; {lacks}</source>
        <translation>복사했습니다; {lacks}</translation>
    </message>
    <message>
        <source>Copied the command of this figure</source>
        <translation>이 그림의 명령을 복사했습니다</translation>
    </message>
    <message>
        <source>Default</source>
        <translation>기본값</translation>
    </message>
    <message>
        <source>Custom</source>
        <translation>사용자 지정</translation>
    </message>
    <message>
        <source>None</source>
        <translation>없음</translation>
    </message>
    <message>
        <source>Figure</source>
        <translation>그림</translation>
    </message>
    <message>
        <source>Width</source>
        <translation>너비</translation>
    </message>
    <message>
        <source>Format</source>
        <translation>형식</translation>
    </message>
    <message>
        <source>Title of the figure</source>
        <translation>그림 제목</translation>
    </message>
    <message>
        <source>Custom title</source>
        <translation>사용자 지정 제목</translation>
    </message>
    <message>
        <source>Title</source>
        <translation>제목</translation>
    </message>
    <message>
        <source>As on screen</source>
        <translation>화면과 같게</translation>
    </message>
    <message>
        <source>Colours</source>
        <translation>색상</translation>
    </message>
    <message>
        <source>Numbers (CSV)</source>
        <translation>수치(CSV)</translation>
    </message>
    <message>
        <source>All values of the figure, in a second file</source>
        <translation>그림의 모든 값을 두 번째 파일에 저장</translation>
    </message>
    <message>
        <source>Also save</source>
        <translation>함께 저장</translation>
    </message>
    <message>
        <source>3.25in, 89mm, 12cm or 252pt</source>
        <translation>3.25in, 89mm, 12cm 또는 252pt</translation>
    </message>
    <message>
        <source>Another width</source>
        <translation>다른 너비</translation>
    </message>
    <message>
        <source>Another width…</source>
        <translation>다른 너비…</translation>
    </message>
    <message>
        <source>This figure has fixed colours</source>
        <translation>이 그림은 색상이 고정되어 있습니다</translation>
    </message>
    <message>
        <source>Fit</source>
        <translation>맞춤</translation>
    </message>
    <message>
        <source>About this dialog</source>
        <translation>이 대화 상자 정보</translation>
    </message>
    <message>
        <source>Size of the preview</source>
        <translation>미리 보기 크기</translation>
    </message>
    <message>
        <source>Size of the figure</source>
        <translation>그림 크기</translation>
    </message>
    <message>
        <source>Copy command</source>
        <translation>명령 복사</translation>
    </message>
    <message>
        <source>Copy the command that draws this figure</source>
        <translation>이 그림을 그리는 명령 복사</translation>
    </message>
    <message>
        <source>Export…</source>
        <translation>내보내기…</translation>
    </message>
    <message>
        <source>You can export another figure:</source>
        <translation>다른 그림을 내보낼 수 있습니다:</translation>
    </message>
    <message>
        <source>Show in folder</source>
        <translation>폴더에서 보기</translation>
    </message>
    <message>
        <source>{name} is zoomed in; its figure shows all of it.</source>
        <translation>{name} 패널은 확대되어 있습니다. 그림에는 전체가 표시됩니다.</translation>
    </message>
    <message>
        <source>Copied a picture: {title}</source>
        <translation>이미지를 복사했습니다: {title}</translation>
    </message>
    <message>
        <source>This pane has no values to copy as a table</source>
        <translation>이 패널에는 표로 복사할 값이 없습니다</translation>
    </message>
    <message>
        <source>Copied a table of {rows:,} rows: {title}</source>
        <translation>{rows:,}행 표를 복사했습니다: {title}</translation>
    </message>
    <message>
        <source>Nothing on screen can be drawn</source>
        <translation>화면에 그릴 수 있는 것이 없습니다</translation>
    </message>
    <message>
        <source>Figures (*.{ending})</source>
        <translation>그림 (*.{ending})</translation>
    </message>
    <message>
        <source>Export figure</source>
        <translation>그림 내보내기</translation>
    </message>
    <message>
        <source>Export {name}</source>
        <translation>{name} 내보내기</translation>
    </message>
    <message>
        <source>Exported {path} and its numbers</source>
        <translation>그림과 수치를 내보냈습니다: {path}</translation>
    </message>
    <message>
        <source>Exported {path}</source>
        <translation>내보냈습니다: {path}</translation>
    </message>
    <message>
        <source>This pane</source>
        <translation>이 패널</translation>
    </message>
    <message>
        <source>{title} has no figure.</source>
        <translation>{title}: 그림이 없습니다.</translation>
    </message>
    <message>
        <source>Reading the row of every stage</source>
        <translation>모든 처리 단계의 행 읽는 중</translation>
    </message>
    <message>
        <source>Computing the attention rollout</source>
        <translation>어텐션 롤아웃 계산 중</translation>
    </message>
    <message>
        <source>not captured</source>
        <translation>캡처되지 않음</translation>
    </message>
    <message>
        <source>padding at the start</source>
        <translation>시작 부분의 패딩</translation>
    </message>
    <message>
        <source>{name} is left out</source>
        <translation>{name}: 제외됨</translation>
    </message>
    <message>
        <source>{name} is pooled into the next group</source>
        <translation>{name}: 다음 그룹으로 풀링됨</translation>
    </message>
    <message>
        <source>{name} is not in a segment yet</source>
        <translation>{name}: 아직 세그먼트에 속하지 않음</translation>
    </message>
    <message>
        <source>{name} attends most to {other} {weight}</source>
        <translation>{name}의 최대 어텐션: {other} {weight}</translation>
    </message>
    <message>
        <source>{name} was left out</source>
        <translation>{name}: 제외됨</translation>
    </message>
    <message>
        <source> and {many} more</source>
        <translation> 외 {many}</translation>
    </message>
    <message>
        <source>Rollout needs a token of the target: choose one.</source>
        <translation>롤아웃에는 대상문의 토큰이 필요합니다: 하나를 선택하십시오.</translation>
    </message>
    <message>
        <source>itself {share}</source>
        <translation>자기 자신 {share}</translation>
    </message>
    <message>
        <source>the source {share} ({best})</source>
        <translation>원문 {share} ({best})</translation>
    </message>
    <message>
        <source>Attention rollout (with residual): {sources}.</source>
        <translation>어텐션 롤아웃(잔차 포함): {sources}.</translation>
    </message>
    <message>
        <source>{name} of {word}</source>
        <translation>{word}의 {name}</translation>
    </message>
    <message>
        <source>residual (skip) connection</source>
        <translation>잔차 연결(스킵)</translation>
    </message>
    <message>
        <source>next {unit}</source>
        <translation>다음 {unit}</translation>
    </message>
    <message>
        <source>Follow one token</source>
        <translation>토큰 하나 따라가기</translation>
    </message>
    <message>
        <source>{name}: masked (causal)</source>
        <translation>{name}: 마스크됨(인과)</translation>
    </message>
    <message>
        <source>Run the model on a text to follow a token</source>
        <translation>토큰을 따라가려면 텍스트에 모델을 실행하십시오</translation>
    </message>
    <message>
        <source>Follow shows one token at every stage of the model.</source>
        <translation>따라가기는 모델의 모든 처리 단계에서 토큰 하나를 보여 줍니다.</translation>
    </message>
    <message>
        <source>({unit} {number:,})</source>
        <translation>({unit} {number:,})</translation>
    </message>
    <message>
        <source>through the bottleneck and back</source>
        <translation>병목을 거쳐 되돌아옴</translation>
    </message>
    <message>
        <source>through the {level} bottleneck and back</source>
        <translation>{level} 병목을 거쳐 되돌아옴</translation>
    </message>
    <message>
        <source>through the layers</source>
        <translation>레이어를 거침</translation>
    </message>
    <message>
        <source>through the encoder</source>
        <translation>인코더를 거침</translation>
    </message>
    <message>
        <source>through the decoder</source>
        <translation>디코더를 거침</translation>
    </message>
    <message>
        <source>{name}: not part of the text</source>
        <translation>{name}: 텍스트에 속하지 않음</translation>
    </message>
    <message>
        <source>position {number:,}: not part of the text</source>
        <translation>위치 {number:,}: 텍스트에 속하지 않음</translation>
    </message>
    <message>
        <source>row {number:,}</source>
        <translation>행 {number:,}</translation>
    </message>
    <message>
        <source>line {number:,}</source>
        <translation>줄 {number:,}</translation>
    </message>
    <message>
        <source>{number} s</source>
        <translation>{number}초</translation>
    </message>
    <message>
        <source>{n:,} of {total:,} heads off</source>
        <translation>헤드 {total:,}개 중 {n:,}개 꺼짐</translation>
    </message>
    <message>
        <source>{first} to {last}</source>
        <translation>{first}~{last}</translation>
    </message>
    <message>
        <source>{before} and {last}</source>
        <translation>{before}, {last}</translation>
    </message>
    <message>
        <source>key group {layer}.g{group}: heads {heads} share their keys</source>
        <translation>키 그룹 {layer}.g{group}: 헤드 {heads} 키 공유</translation>
    </message>
    <message>
        <source>bits per {noun}</source>
        <translation>{noun}당 비트</translation>
    </message>
    <message>
        <source>mbit per {noun}</source>
        <translation>{noun}당 mbit</translation>
    </message>
    <message>
        <source>10⁻³ {unit}</source>
        <translation>10⁻³ {unit}</translation>
    </message>
    <message>
        <source>µbit per {noun}</source>
        <translation>{noun}당 µbit</translation>
    </message>
    <message>
        <source>10⁻⁶ {unit}</source>
        <translation>10⁻⁶ {unit}</translation>
    </message>
    <message>
        <source>not measured</source>
        <translation>측정되지 않음</translation>
    </message>
    <message>
        <source>{value} {unit}</source>
        <translation>{value} {unit}</translation>
    </message>
    <message>
        <source>{value} [{low}, {high}] {unit}</source>
        <translation>{value} [{low}, {high}] {unit}</translation>
    </message>
    <message>
        <source>{value} [{low}, {high}] {unit}, not significant</source>
        <translation>{value} [{low}, {high}] {unit}, 유의하지 않음</translation>
    </message>
    <message>
        <source>Patching, denoised</source>
        <translation>패칭, 복원 방향</translation>
    </message>
    <message>
        <source>Share of the logit difference that is restored when a head of the corrupted run takes its context from the clean run</source>
        <translation>손상 텍스트 실행의 헤드가 정상 텍스트 실행의 문맥을 받을 때 복원되는 로짓 차이의 비율</translation>
    </message>
    <message>
        <source>Patching, noised</source>
        <translation>패칭, 손상 방향</translation>
    </message>
    <message>
        <source>Share of the logit difference that is lost when a head of the clean run takes its context from the corrupted run</source>
        <translation>정상 텍스트 실행의 헤드가 손상 텍스트 실행의 문맥을 받을 때 사라지는 로짓 차이의 비율</translation>
    </message>
    <message>
        <source>(Δ_patched − Δ_corrupted) / (Δ_clean − Δ_corrupted)</source>
        <translation>(Δ_patched − Δ_corrupted) / (Δ_clean − Δ_corrupted)</translation>
    </message>
    <message>
        <source>Meng et al. 2022</source>
        <translation>Meng et al. 2022</translation>
    </message>
    <message>
        <source>% of the logit difference</source>
        <translation>로짓 차이의 %</translation>
    </message>
    <message>
        <source>opposes it</source>
        <translation>반대</translation>
    </message>
    <message>
        <source>supports it</source>
        <translation>지지</translation>
    </message>
    <message>
        <source>{low} to {high}</source>
        <translation>{low}~{high}</translation>
    </message>
    <message>
        <source>on {some} of {all}</source>
        <translation>{all} 중 {some}개</translation>
    </message>
    <message>
        <source>switched off</source>
        <translation>꺼짐</translation>
    </message>
    <message>
        <source>on</source>
        <translation>켜짐</translation>
    </message>
    <message>
        <source>{score}: {value}</source>
        <translation>{score}: {value}</translation>
    </message>
    <message>
        <source>not measured yet</source>
        <translation>아직 측정되지 않음</translation>
    </message>
    <message>
        <source>Colours: not measured yet</source>
        <translation>색상: 아직 측정되지 않음</translation>
    </message>
    <message>
        <source>Colours: {first} = {low}, {second} = {high}; {unit}</source>
        <translation>색상: {first} = {low}, {second} = {high}; {unit}</translation>
    </message>
    <message>
        <source>Go to the head with the most similar rows</source>
        <translation>행이 가장 비슷한 헤드로 이동</translation>
    </message>
    <message>
        <source>Top examples of this head</source>
        <translation>이 헤드의 대표 예시</translation>
    </message>
    <message>
        <source>Not measured: this head's layer is not captured</source>
        <translation>측정되지 않음: 이 헤드의 레이어가 캡처되지 않았습니다</translation>
    </message>
    <message>
        <source>Nearest: {head}, distance {distance}</source>
        <translation>가장 가까운 헤드: {head}, 거리 {distance}</translation>
    </message>
    <message>
        <source>Top examples</source>
        <translation>대표 예시</translation>
    </message>
    <message>
        <source>Most focused queries</source>
        <translation>가장 집중된 쿼리</translation>
    </message>
    <message>
        <source>text {n:,}</source>
        <translation>텍스트 {n:,}</translation>
    </message>
    <message>
        <source>no token</source>
        <translation>토큰 없음</translation>
    </message>
    <message>
        <source>{query} puts {share} of its weight on {key}</source>
        <translation>{query}에서 {key}에 준 가중치 비율: {share}</translation>
    </message>
    <message>
        <source>Role</source>
        <translation>역할</translation>
    </message>
    <message>
        <source>The keys whose share of the weight is highest compared with chance</source>
        <translation>우연 수준에 비해 가중치 비율이 가장 높은 키</translation>
    </message>
    <message>
        <source>mean_i Σ_j∈R p_ij : mean_i |R_i| / |V_i|</source>
        <translation>mean_i Σ_j∈R p_ij : mean_i |R_i| / |V_i|</translation>
    </message>
    <message>
        <source>Voita et al. 2019; how-to/heads.md</source>
        <translation>Voita et al. 2019; how-to/heads.md</translation>
    </message>
    <message>
        <source>Score</source>
        <translation>점수</translation>
    </message>
    <message>
        <source>Share of the head's weight on the keys of its role, averaged over queries</source>
        <translation>역할에 해당하는 키에 준 헤드의 가중치 비율을 쿼리에 대해 평균한 값</translation>
    </message>
    <message>
        <source>mean_i Σ_j∈R p_ij, p_ij = |a_ij| / Σ_k |a_ik|</source>
        <translation>mean_i Σ_j∈R p_ij, p_ij = |a_ij| / Σ_k |a_ik|</translation>
    </message>
    <message>
        <source>Other roles</source>
        <translation>다른 역할</translation>
    </message>
    <message>
        <source>Up to three more roles above chance, and roles by position alone</source>
        <translation>우연 수준을 넘는 최대 세 가지 다른 역할과, 위치만으로 정해지는 역할</translation>
    </message>
    <message>
        <source>Nearest</source>
        <translation>가장 가까운 헤드</translation>
    </message>
    <message>
        <source>The head of the same kind with the most similar rows</source>
        <translation>행이 가장 비슷한 같은 종류의 헤드</translation>
    </message>
    <message>
        <source>Head</source>
        <translation>헤드</translation>
    </message>
    <message>
        <source>Level</source>
        <translation>해상도 단계</translation>
    </message>
    <message>
        <source>Kind</source>
        <translation>종류</translation>
    </message>
    <message>
        <source>Chart</source>
        <translation>차트</translation>
    </message>
    <message>
        <source>Examples</source>
        <translation>예시</translation>
    </message>
    <message>
        <source>This text</source>
        <translation>이 텍스트</translation>
    </message>
    <message>
        <source>All texts</source>
        <translation>모든 텍스트</translation>
    </message>
    <message>
        <source>No heads measured yet</source>
        <translation>아직 측정된 헤드가 없습니다</translation>
    </message>
    <message>
        <source>Run the model on a text to measure its heads.</source>
        <translation>헤드를 측정하려면 텍스트에 모델을 실행하십시오.</translation>
    </message>
    <message>
        <source>All heads</source>
        <translation>모든 헤드</translation>
    </message>
    <message>
        <source>Figures show one text: choose This text first</source>
        <translation>그림은 텍스트 하나만 보여 줍니다: 먼저 ‘이 텍스트’를 선택하십시오</translation>
    </message>
    <message>
        <source>Texts to measure heads on</source>
        <translation>헤드를 측정할 텍스트</translation>
    </message>
    <message>
        <source>Measure in depth</source>
        <translation>심층 측정</translation>
    </message>
    <message>
        <source>Also measure distance kernels and the nearest head of each</source>
        <translation>거리 커널과 각 헤드의 가장 가까운 헤드도 측정</translation>
    </message>
    <message>
        <source>Shown next to the table</source>
        <translation>표 옆에 표시할 내용</translation>
    </message>
    <message>
        <source>X axis</source>
        <translation>X축</translation>
    </message>
    <message>
        <source>Y axis</source>
        <translation>Y축</translation>
    </message>
    <message>
        <source>{n:,} heads without these metrics</source>
        <translation>이 지표가 없는 헤드 {n:,}개</translation>
    </message>
    <message>
        <source>no single role</source>
        <translation>단일 역할 없음</translation>
    </message>
    <message>
        <source>No head has both metrics</source>
        <translation>두 지표가 모두 있는 헤드가 없습니다</translation>
    </message>
    <message>
        <source>to {level}</source>
        <translation>→ {level}</translation>
    </message>
    <message>
        <source>{heads}; x: {across}, {xs}; y: {up}, {ys}</source>
        <translation>{heads}; x: {across}, {xs}; y: {up}, {ys}</translation>
    </message>
    <message>
        <source>{heads} on this text</source>
        <translation>이 텍스트의 {heads}</translation>
    </message>
    <message>
        <source>{heads} on {texts}, so far</source>
        <translation>지금까지 {texts}에서 측정한 {heads}</translation>
    </message>
    <message>
        <source>{heads} on {texts}</source>
        <translation>{texts}에서 측정한 {heads}</translation>
    </message>
    <message>
        <source>Measuring heads</source>
        <translation>헤드 측정 중</translation>
    </message>
    <message>
        <source>Point at a cell to read it; click to select its query.</source>
        <translation>칸을 가리키면 내용을 읽고, 클릭하면 그 쿼리를 선택합니다.</translation>
    </message>
    <message>
        <source>Head {head} is switched off: it adds nothing to {query}.</source>
        <translation>헤드 {head}: 꺼져 있어 {query}에 아무것도 더하지 않습니다.</translation>
    </message>
    <message>
        <source>{key} is masked for {query}: {why}.</source>
        <translation>{query}에서 {key}: 마스크됨, {why}.</translation>
    </message>
    <message>
        <source>{query} attends to nothing here.</source>
        <translation>{query}에서는 여기의 어떤 키에도 주목하지 않습니다.</translation>
    </message>
    <message>
        <source>{query} attends most to {key}: {amount}{away}. {sum}</source>
        <translation>{query}에서는 {key}에 가장 많이 주목합니다: {amount}{away}. {sum}</translation>
    </message>
    <message>
        <source>{share} of its weight</source>
        <translation>가중치의 {share}</translation>
    </message>
    <message>
        <source>{query} puts no weight on {key}{away}. {sum}</source>
        <translation>{query}에서 {key}{away}에는 가중치를 주지 않습니다. {sum}</translation>
    </message>
    <message>
        <source>{query} puts {amount} of its weight on {key}{away}. {sum}</source>
        <translation>{query}에서 {key}{away}에 준 가중치 비율: {amount}. {sum}</translation>
    </message>
    <message>
        <source>{query} adds {amount} of {key}{away}. {sum}</source>
        <translation>{query}에 {key}{away}의 {amount}배를 더합니다. {sum}</translation>
    </message>
    <message>
        <source>{query} subtracts {amount} of {key}{away}. {sum}</source>
        <translation>{query}에서 {key}{away}의 {amount}배를 뺍니다. {sum}</translation>
    </message>
    <message>
        <source>subtracted</source>
        <translation>뺌</translation>
    </message>
    <message>
        <source>added</source>
        <translation>더함</translation>
    </message>
    <message>
        <source>of this row’s weight</source>
        <translation>이 행의 가중치 중 비율</translation>
    </message>
    <message>
        <source>from</source>
        <translation>쿼리</translation>
    </message>
    <message>
        <source>to</source>
        <translation>키</translation>
    </message>
    <message>
        <source>&lt;table cellspacing="0" cellpadding="1" style="margin-top:4px"&gt;</source>
        <translation>&lt;table cellspacing="0" cellpadding="1" style="margin-top:4px"&gt;</translation>
    </message>
    <message>
        <source>The row sums to {sum}.</source>
        <translation>행 합: {sum}.</translation>
    </message>
    <message>
        <source>The row sums to {sum:.3f}.</source>
        <translation>행 합: {sum:.3f}.</translation>
    </message>
    <message>
        <source> {far} back</source>
        <translation> ({far} 이전)</translation>
    </message>
    <message>
        <source> {far} ahead</source>
        <translation> ({far} 이후)</translation>
    </message>
    <message>
        <source>it comes after the query</source>
        <translation>쿼리보다 뒤에 있음</translation>
    </message>
    <message>
        <source>it is not among the first or the latest keys</source>
        <translation>처음 키나 최근 키에 속하지 않음</translation>
    </message>
    <message>
        <source>it is outside the mask</source>
        <translation>마스크 범위 밖에 있음</translation>
    </message>
    <message>
        <source>masked (causal)</source>
        <translation>마스크됨(인과)</translation>
    </message>
    <message>
        <source>masked: not in the first {sink:,} or latest {recent:,}</source>
        <translation>마스크됨: 처음 {sink:,}개나 최근 {recent:,}개에 속하지 않음</translation>
    </message>
    <message>
        <source>masked: outside the window</source>
        <translation>마스크됨: 범위 밖</translation>
    </message>
    <message>
        <source>masked: padding</source>
        <translation>마스크됨: 패딩</translation>
    </message>
    <message>
        <source>Map of attention weights</source>
        <translation>어텐션 가중치 맵</translation>
    </message>
    <message>
        <source>Maps of A, of B, and of A − B</source>
        <translation>A, B, A − B의 맵</translation>
    </message>
    <message>
        <source>Weight</source>
        <translation>가중치</translation>
    </message>
    <message>
        <source>row {row:,}: sum {sum}</source>
        <translation>행 {row:,}: 합 {sum}</translation>
    </message>
    <message>
        <source>off: this head adds nothing</source>
        <translation>꺼짐: 이 헤드는 아무것도 더하지 않습니다</translation>
    </message>
    <message>
        <source>1 px = {rows} × {columns}, max</source>
        <translation>1 px = {rows} × {columns}, 최댓값</translation>
    </message>
    <message>
        <source>loading full resolution</source>
        <translation>전체 해상도 불러오는 중</translation>
    </message>
    <message>
        <source>loading, within {error:.1f} %</source>
        <translation>불러오는 중, 오차 {error:.1f} % 이내</translation>
    </message>
    <message>
        <source>Help page</source>
        <translation>도움말 페이지</translation>
    </message>
    <message>
        <source>{page} is in the documentation of hgviz</source>
        <translation>hgviz 문서에 있는 페이지: {page}</translation>
    </message>
    <message>
        <source>Classes</source>
        <translation>클래스</translation>
    </message>
    <message>
        <source>Masked {units}</source>
        <translation>마스크된 {units}</translation>
    </message>
    <message>
        <source>Hidden states</source>
        <translation>은닉 상태</translation>
    </message>
    <message>
        <source>Classes of tokens</source>
        <translation>토큰의 클래스</translation>
    </message>
    <message>
        <source>Answer span</source>
        <translation>답의 범위</translation>
    </message>
    <message>
        <source>Next {unit}</source>
        <translation>다음 {unit}</translation>
    </message>
    <message>
        <source>{many} each</source>
        <translation>각각 {many}</translation>
    </message>
    <message>
        <source>attention cost {part}</source>
        <translation>어텐션 비용 {part}</translation>
    </message>
    <message>
        <source>not captured yet</source>
        <translation>아직 캡처되지 않음</translation>
    </message>
    <message>
        <source>one key: weight 1</source>
        <translation>키 하나: 가중치 1</translation>
    </message>
    <message>
        <source>focus {value}</source>
        <translation>집중도 {value}</translation>
    </message>
    <message>
        <source>focus</source>
        <translation>집중도</translation>
    </message>
    <message>
        <source>entropy {value} nats</source>
        <translation>엔트로피 {value} nat</translation>
    </message>
    <message>
        <source>encoder output</source>
        <translation>인코더 출력</translation>
    </message>
    <message>
        <source>Colour heads by</source>
        <translation>헤드 색상 기준</translation>
    </message>
    <message>
        <source>no colour: {n:,} without a value</source>
        <translation>색상 없음: 값이 없는 헤드 {n:,}개</translation>
    </message>
    <message>
        <source>Open a model to see its attention</source>
        <translation>모델을 열어 어텐션을 살펴보십시오</translation>
    </message>
    <message>
        <source>Drop a checkpoint folder here, or start with the sample: a small Hourglass that reads text byte by byte.</source>
        <translation>체크포인트 폴더를 여기에 놓거나, 텍스트를 바이트 단위로 읽는 작은 Hourglass 샘플로 시작하십시오.</translation>
    </message>
    <message>
        <source>Open a checkpoint…</source>
        <translation>체크포인트 열기…</translation>
    </message>
    <message>
        <source>Hourglass</source>
        <translation>모래시계</translation>
    </message>
    <message>
        <source>Layers</source>
        <translation>레이어</translation>
    </message>
    <message>
        <source>activation replaced, not retrained</source>
        <translation>활성화 함수를 바꿈, 다시 학습하지 않음</translation>
    </message>
    <message>
        <source>colour: focus</source>
        <translation>색상: 집중도</translation>
    </message>
    <message>
        <source>1 layer has no map: {made}</source>
        <translation>맵이 없는 레이어 1개: {made}</translation>
    </message>
    <message>
        <source>{n:,} layers have no map: {made}</source>
        <translation>맵이 없는 레이어 {n:,}개: {made}</translation>
    </message>
    <message>
        <source>Maps</source>
        <translation>맵</translation>
    </message>
    <message>
        <source>Colour heads by: {metric}</source>
        <translation>헤드 색상 기준: {metric}</translation>
    </message>
    <message>
        <source>Focus</source>
        <translation>집중도</translation>
    </message>
    <message>
        <source>Drawing the hourglass</source>
        <translation>모래시계 그리는 중</translation>
    </message>
    <message>
        <source>running on {many}</source>
        <translation>{many} 실행 중</translation>
    </message>
    <message>
        <source>{done} of {layers} captured</source>
        <translation>{layers} 중 {done}개 캡처됨</translation>
    </message>
    <message>
        <source>{layers}, shortened to segments in the middle</source>
        <translation>{layers}, 중간에서 세그먼트로 단축</translation>
    </message>
    <message>
        <source>{layers}, shortened to 1:{stride}</source>
        <translation>{layers}, 1:{stride} 비율로 단축</translation>
    </message>
    <message>
        <source>{layers}, shortened 1:{stride} in the middle</source>
        <translation>{layers}, 중간에서 1:{stride} 비율로 단축</translation>
    </message>
    <message>
        <source>{own} layers, {crossing} cross-attention</source>
        <translation>레이어 {own}개, 크로스 어텐션 {crossing}개</translation>
    </message>
    <message>
        <source>{heads} in {layers}</source>
        <translation>{layers}에 {heads}</translation>
    </message>
    <message>
        <source>{layers} of {some}</source>
        <translation>{layers}, 각 {some}</translation>
    </message>
    <message>
        <source>Float {dock}, or dock it</source>
        <translation>{dock} 분리 또는 고정</translation>
    </message>
    <message>
        <source>Hide {dock}</source>
        <translation>{dock} 숨기기</translation>
    </message>
    <message>
        <source>Side panels</source>
        <translation>사이드 패널</translation>
    </message>
    <message>
        <source>Attention maps of every head</source>
        <translation>모든 헤드의 어텐션 맵</translation>
    </message>
    <message>
        <source>Inspect the sample</source>
        <translation>샘플 살펴보기</translation>
    </message>
    <message>
        <source>Which heads a classifier needs</source>
        <translation>분류기에 필요한 헤드</translation>
    </message>
    <message>
        <source>Prune a classifier</source>
        <translation>분류기 프루닝</translation>
    </message>
    <message>
        <source>Softmax and ymish on the same text</source>
        <translation>같은 텍스트에 대한 softmax와 ymish</translation>
    </message>
    <message>
        <source>Compare two models</source>
        <translation>두 모델 비교</translation>
    </message>
    <message>
        <source>Opens: {formats}</source>
        <translation>열 수 있는 형식: {formats}</translation>
    </message>
    <message>
        <source>Getting started</source>
        <translation>시작하기</translation>
    </message>
    <message>
        <source>Running model</source>
        <translation>모델 실행</translation>
    </message>
    <message>
        <source>Maps appear once their layers are captured</source>
        <translation>레이어가 캡처되면 맵이 나타납니다</translation>
    </message>
    <message>
        <source>Finished layers can be opened now; the rest appear as they are done.</source>
        <translation>완료된 레이어는 지금 열 수 있고, 나머지는 완료되는 대로 나타납니다.</translation>
    </message>
    <message>
        <source>Stop: {job}</source>
        <translation>중지: {job}</translation>
    </message>
    <message>
        <source>Stop this job</source>
        <translation>이 작업 중지</translation>
    </message>
    <message>
        <source>All jobs</source>
        <translation>모든 작업</translation>
    </message>
    <message>
        <source>{job} and {count} more</source>
        <translation>{job} 외 {count}개</translation>
    </message>
    <message>
        <source>Stop {job}</source>
        <translation>{job} 중지</translation>
    </message>
    <message>
        <source>Jobs</source>
        <translation>작업</translation>
    </message>
    <message>
        <source>Nothing is running.</source>
        <translation>실행 중인 작업이 없습니다.</translation>
    </message>
    <message>
        <source>its text</source>
        <translation>자체 텍스트</translation>
    </message>
    <message>
        <source>the source</source>
        <translation>원문</translation>
    </message>
    <message>
        <source>the slots</source>
        <translation>슬롯</translation>
    </message>
    <message>
        <source>Full resolution</source>
        <translation>전체 해상도</translation>
    </message>
    <message>
        <source>Shortened {level}</source>
        <translation>축소 {level}</translation>
    </message>
    <message>
        <source>Upsampled {level}</source>
        <translation>업샘플 {level}</translation>
    </message>
    <message>
        <source>bottleneck</source>
        <translation>병목</translation>
    </message>
    <message>
        <source>cost 1/{part}</source>
        <translation>비용 1/{part}</translation>
    </message>
    <message>
        <source>{head} on {text}</source>
        <translation>{head}, 대상: {text}</translation>
    </message>
    <message>
        <source>Strongest</source>
        <translation>상위 1개</translation>
    </message>
    <message>
        <source>5 strongest</source>
        <translation>상위 5개</translation>
    </message>
    <message>
        <source>20 strongest</source>
        <translation>상위 20개</translation>
    </message>
    <message>
        <source>80 % of the weight</source>
        <translation>가중치의 80 %</translation>
    </message>
    <message>
        <source>Links drawn for each query and head, {most} at most</source>
        <translation>쿼리와 헤드마다 그리는 연결선, 최대 {most}개</translation>
    </message>
    <message>
        <source>Scale weights by the norm of the value: weight × |v·W_O|</source>
        <translation>값의 노름으로 가중치 조정: 가중치 × |v·W_O|</translation>
    </message>
    <message>
        <source>‖a_ij v_j W_O‖</source>
        <translation>‖a_ij v_j W_O‖</translation>
    </message>
    <message>
        <source>Kobayashi et al. 2020</source>
        <translation>Kobayashi et al. 2020</translation>
    </message>
    <message>
        <source>This capture has no value norms: run the model again to add them</source>
        <translation>이 캡처에는 값 노름이 없습니다. 추가하려면 모델을 다시 실행하십시오</translation>
    </message>
    <message>
        <source>One link for all these heads, with the mean of their weights</source>
        <translation>모든 해당 헤드에 연결선 하나, 가중치는 평균</translation>
    </message>
    <message>
        <source>Merge subwords</source>
        <translation>서브워드 병합</translation>
    </message>
    <message>
        <source>Merge tokens into words: rows averaged, columns added</source>
        <translation>토큰을 단어로 병합: 행은 평균, 열은 합산</translation>
    </message>
    <message>
        <source>Special tokens</source>
        <translation>특수 토큰</translation>
    </message>
    <message>
        <source>Show special tokens, padding and positions before the text</source>
        <translation>특수 토큰, 패딩, 텍스트 앞의 위치 표시</translation>
    </message>
    <message>
        <source>Value norms</source>
        <translation>값 노름</translation>
    </message>
    <message>
        <source>Heads to draw links for</source>
        <translation>연결선을 그릴 헤드</translation>
    </message>
    <message>
        <source>Heads by number, such as 12.5, 11.*</source>
        <translation>번호로 지정한 헤드(예: 12.5, 11.*)</translation>
    </message>
    <message>
        <source>Heads by number</source>
        <translation>번호로 지정한 헤드</translation>
    </message>
    <message>
        <source>Layer {layer}: all heads</source>
        <translation>레이어 {layer}: 모든 헤드</translation>
    </message>
    <message>
        <source>All heads at {level}</source>
        <translation>{level}의 모든 헤드</translation>
    </message>
    <message>
        <source>Heads by number…</source>
        <translation>번호로 헤드 지정…</translation>
    </message>
    <message>
        <source>Ctrl+↑</source>
        <translation>Ctrl+↑</translation>
    </message>
    <message>
        <source>Ctrl+↓</source>
        <translation>Ctrl+↓</translation>
    </message>
    <message>
        <source>The query is a special token, and special tokens are hidden.</source>
        <translation>쿼리가 특수 토큰이며, 특수 토큰은 숨겨져 있습니다.</translation>
    </message>
    <message>
        <source>Heads {heads} are switched off.</source>
        <translation>꺼진 헤드: {heads}.</translation>
    </message>
    <message>
        <source>Head {head} is switched off.</source>
        <translation>꺼진 헤드: {head}.</translation>
    </message>
    <message>
        <source>No weight is large enough to draw.</source>
        <translation>그릴 만큼 큰 가중치가 없습니다.</translation>
    </message>
    <message>
        <source>All weights of this row are 0.</source>
        <translation>이 행의 가중치가 모두 0입니다.</translation>
    </message>
    <message>
        <source>{links}, strongest {key} {amount}</source>
        <translation>{links}, 최대: {key} {amount}</translation>
    </message>
    <message>
        <source>{share} on special tokens, hidden</source>
        <translation>숨긴 특수 토큰에 {share}</translation>
    </message>
    <message>
        <source>weight × |v·W_O|</source>
        <translation>가중치 × |v·W_O|</translation>
    </message>
    <message>
        <source>dashed: negative</source>
        <translation>파선: 음수</translation>
    </message>
    <message>
        <source>Query position</source>
        <translation>쿼리 위치</translation>
    </message>
    <message>
        <source>Key position</source>
        <translation>키 위치</translation>
    </message>
    <message>
        <source>Links between queries and keys</source>
        <translation>쿼리와 키 사이의 연결선</translation>
    </message>
    <message>
        <source>No links to show yet</source>
        <translation>아직 표시할 연결선이 없습니다</translation>
    </message>
    <message>
        <source>Run the model on a text to see its strongest weights.</source>
        <translation>텍스트에 모델을 실행하면 가장 큰 가중치가 표시됩니다.</translation>
    </message>
    <message>
        <source>Links</source>
        <translation>연결선</translation>
    </message>
    <message>
        <source>There are no links yet</source>
        <translation>아직 연결선이 없습니다</translation>
    </message>
    <message>
        <source>Show the links of all queries in view (Esc)</source>
        <translation>보이는 모든 쿼리의 연결선 표시(Esc)</translation>
    </message>
    <message>
        <source>Reading links</source>
        <translation>연결선 읽는 중</translation>
    </message>
    <message>
        <source>Mean of {n:,} heads</source>
        <translation>헤드 {n:,}개의 평균</translation>
    </message>
    <message>
        <source>all queries in view</source>
        <translation>보이는 모든 쿼리</translation>
    </message>
    <message>
        <source>Query token</source>
        <translation>쿼리 토큰</translation>
    </message>
    <message>
        <source>Key token</source>
        <translation>키 토큰</translation>
    </message>
    <message>
        <source>Map</source>
        <translation>맵</translation>
    </message>
    <message>
        <source>Full matrix</source>
        <translation>전체 행렬</translation>
    </message>
    <message>
        <source>Also show the zeros outside the windows</source>
        <translation>윈도 밖의 0도 표시</translation>
    </message>
    <message>
        <source>Fit map to pane (F)</source>
        <translation>맵을 패널에 맞추기(F)</translation>
    </message>
    <message>
        <source>No image yet</source>
        <translation>아직 이미지가 없습니다</translation>
    </message>
    <message>
        <source>Choose an image to see the attention of each head over it.</source>
        <translation>이미지를 선택하면 각 헤드의 어텐션이 이미지 위에 표시됩니다.</translation>
    </message>
    <message>
        <source>This is not a capture of an image</source>
        <translation>이미지의 캡처가 아닙니다</translation>
    </message>
    <message>
        <source>See its tokens on the map.</source>
        <translation>토큰은 맵에서 볼 수 있습니다.</translation>
    </message>
    <message>
        <source>This layer does not attend to the image</source>
        <translation>이 레이어의 어텐션은 이미지를 향하지 않습니다</translation>
    </message>
    <message>
        <source>Choose another layer.</source>
        <translation>다른 레이어를 선택하십시오.</translation>
    </message>
    <message>
        <source>{query} attends most to {key}: {weight:.2g}.</source>
        <translation>{query}의 어텐션이 가장 큰 키: {key}, {weight:.2g}.</translation>
    </message>
    <message>
        <source>{query} attends to {key}: {weight:.2g}.</source>
        <translation>{query}에서 {key}에 대한 어텐션: {weight:.2g}.</translation>
    </message>
    <message>
        <source>{name} (not a patch): {weight:.2g} of the row.</source>
        <translation>{name}(패치 아님): 행의 {weight:.2g}.</translation>
    </message>
    <message>
        <source>Image</source>
        <translation>이미지</translation>
    </message>
    <message>
        <source>query {query}</source>
        <translation>쿼리 {query}</translation>
    </message>
    <message>
        <source>{query} with {key}: {products} of {q} and {k} sum to {total}</source>
        <translation>{query} 및 {key}: {q}, {k}의 {products} 합계 {total}</translation>
    </message>
    <message>
        <source>{query} with {key}: {products} of {q} and {k}, minus half the squared norm of k, sum to {total}</source>
        <translation>{query} 및 {key}: {q}, {k}의 {products}에서 k의 제곱 노름 절반을 뺀 합계 {total}</translation>
    </message>
    <message>
        <source>those with the distance sum to {amount}</source>
        <translation>거리 항을 더한 합계 {amount}</translation>
    </message>
    <message>
        <source>the distance from the centre adds {amount}</source>
        <translation>중심과의 거리 항 {amount} 더함</translation>
    </message>
    <message>
        <source>{query} with {key}: the distance from the centre adds {amount}</source>
        <translation>{query} 및 {key}: 중심과의 거리 항 {amount} 더함</translation>
    </message>
    <message>
        <source>Every key of {query} is masked, so its row is uniform: {weight} on {key}.</source>
        <translation>{query}의 모든 키가 마스크되어 행이 균일합니다: {key}의 가중치 {weight}.</translation>
    </message>
    <message>
        <source>times {scale}: {amount}</source>
        <translation>{scale} 곱함: {amount}</translation>
    </message>
    <message>
        <source>divided by the norm of the row, {length}: {amount}</source>
        <translation>행의 노름({length})으로 나눔: {amount}</translation>
    </message>
    <message>
        <source>ln(exp − 1) of that: {amount}</source>
        <translation>ln(exp − 1) 적용: {amount}</translation>
    </message>
    <message>
        <source>minus the log-sum-exp of the row, {total}: {amount}</source>
        <translation>행의 log-sum-exp({total})를 뺌: {amount}</translation>
    </message>
    <message>
        <source>minus the log of the number of keys not masked, {total}: {amount}</source>
        <translation>마스크되지 않은 키 수의 로그({total})를 뺌: {amount}</translation>
    </message>
    <message>
        <source>this key is masked: weight 0</source>
        <translation>이 키는 마스크됨: 가중치 0</translation>
    </message>
    <message>
        <source>not among the {top_k:,} largest: weight 0</source>
        <translation>가장 큰 {top_k:,}개에 들지 않음: 가중치 0</translation>
    </message>
    <message>
        <source>not above 0: weight 0</source>
        <translation>0보다 크지 않음: 가중치 0</translation>
    </message>
    <message>
        <source>exp of that: weight {amount}</source>
        <translation>exp 적용: 가중치 {amount}</translation>
    </message>
    <message>
        <source>divided by the sum of the row, {total}: weight {amount}</source>
        <translation>행의 합({total})으로 나눔: 가중치 {amount}</translation>
    </message>
    <message>
        <source>its square divided by the sum of squares of the row, {total}: weight {amount}</source>
        <translation>제곱을 행의 제곱합({total})으로 나눔: 가중치 {amount}</translation>
    </message>
    <message>
        <source>{activation} of that: weight {amount}</source>
        <translation>{activation} 적용: 가중치 {amount}</translation>
    </message>
    <message>
        <source>a position before the text</source>
        <translation>텍스트 앞의 위치</translation>
    </message>
    <message>
        <source>product</source>
        <translation>곱</translation>
    </message>
    <message>
        <source>q_i · k_j = Σ_e q_ie k_je</source>
        <translation>q_i · k_j = Σ_e q_ie k_je</translation>
    </message>
    <message>
        <source>s_ij = c (q_i · k_j + r_ij), c = 1 / √d</source>
        <translation>s_ij = c (q_i · k_j + r_ij), c = 1 / √d</translation>
    </message>
    <message>
        <source>s_ij, j ∈ V_i</source>
        <translation>s_ij, j ∈ V_i</translation>
    </message>
    <message>
        <source>s_ij, s_ij ≥ t_i</source>
        <translation>s_ij, s_ij ≥ t_i</translation>
    </message>
    <message>
        <source>s_ij / √(Σ_k s_ik²)</source>
        <translation>s_ij / √(Σ_k s_ik²)</translation>
    </message>
    <message>
        <source>ln(exp s_ij − 1)</source>
        <translation>ln(exp s_ij − 1)</translation>
    </message>
    <message>
        <source>s_ij − ln Σ_k exp s_ik</source>
        <translation>s_ij − ln Σ_k exp s_ik</translation>
    </message>
    <message>
        <source>s_ij − ln n</source>
        <translation>s_ij − ln n</translation>
    </message>
    <message>
        <source>a_ij = f(s_ij)</source>
        <translation>a_ij = f(s_ij)</translation>
    </message>
    <message>
        <source>q·k per dimension</source>
        <translation>차원별 q·k</translation>
    </message>
    <message>
        <source>Query times key in each dimension: blue negative, red positive</source>
        <translation>각 차원에서 쿼리와 키의 곱: 파랑 음수, 빨강 양수</translation>
    </message>
    <message>
        <source>By position</source>
        <translation>위치순</translation>
    </message>
    <message>
        <source>By weight</source>
        <translation>가중치순</translation>
    </message>
    <message>
        <source>No attention captured yet</source>
        <translation>아직 캡처된 어텐션이 없습니다</translation>
    </message>
    <message>
        <source>Run the model on a text to see its queries and keys.</source>
        <translation>텍스트에 모델을 실행하면 쿼리와 키가 표시됩니다.</translation>
    </message>
    <message>
        <source>No query chosen</source>
        <translation>선택한 쿼리가 없습니다</translation>
    </message>
    <message>
        <source>Choose a query in the text below to list its keys.</source>
        <translation>아래 텍스트에서 쿼리를 선택하면 그 키가 나열됩니다.</translation>
    </message>
    <message>
        <source>Choose a query</source>
        <translation>쿼리 선택</translation>
    </message>
    <message>
        <source>The keys of this layer are slots</source>
        <translation>이 레이어의 키는 슬롯입니다</translation>
    </message>
    <message>
        <source>Weights on the tokens behind slots are not products of queries and keys.</source>
        <translation>슬롯 뒤의 토큰에 대한 가중치는 쿼리와 키의 곱이 아닙니다.</translation>
    </message>
    <message>
        <source>Show the slots</source>
        <translation>슬롯 표시</translation>
    </message>
    <message>
        <source>This capture has weights only</source>
        <translation>이 캡처에는 가중치만 있습니다</translation>
    </message>
    <message>
        <source>It has no queries and keys. Capture the text again without --dense.</source>
        <translation>쿼리와 키가 없습니다. --dense 없이 텍스트를 다시 캡처하십시오.</translation>
    </message>
    <message>
        <source>Neurons</source>
        <translation>뉴런</translation>
    </message>
    <message>
        <source>Order of the keys</source>
        <translation>키의 순서</translation>
    </message>
    <message>
        <source>Products by dimension</source>
        <translation>차원별 곱</translation>
    </message>
    <message>
        <source>Every key of this query</source>
        <translation>이 쿼리의 모든 키</translation>
    </message>
    <message>
        <source>query {glyph} {place}</source>
        <translation>쿼리 {glyph} {place}</translation>
    </message>
    <message>
        <source>This query has no keys.</source>
        <translation>이 쿼리에는 키가 없습니다.</translation>
    </message>
    <message>
        <source>Made</source>
        <translation>Made</translation>
    </message>
    <message>
        <source>Computing the map</source>
        <translation>맵 계산 중</translation>
    </message>
    <message>
        <source>Summing the rows</source>
        <translation>행 합 계산 중</translation>
    </message>
    <message>
        <source>Reading the row</source>
        <translation>행 읽는 중</translation>
    </message>
    <message>
        <source>It was pruned in B, or B has no such layer.</source>
        <translation>B에서 프루닝되었거나 B에 그런 레이어가 없습니다.</translation>
    </message>
    <message>
        <source>Only A has head {head}.</source>
        <translation>헤드 {head}: A에만 있습니다.</translation>
    </message>
    <message>
        <source>B has no head {head}</source>
        <translation>B에 없는 헤드: {head}</translation>
    </message>
    <message>
        <source>Nothing to subtract</source>
        <translation>뺄 것이 없습니다</translation>
    </message>
    <message>
        <source>A and B have no position in common.</source>
        <translation>A와 B에 공통된 위치가 없습니다.</translation>
    </message>
    <message>
        <source>Nothing in common</source>
        <translation>공통 위치가 없습니다</translation>
    </message>
    <message>
        <source>Opening the head</source>
        <translation>헤드 여는 중</translation>
    </message>
    <message>
        <source>Opening the heads to compare</source>
        <translation>비교할 헤드 여는 중</translation>
    </message>
    <message>
        <source>Comparing the heads</source>
        <translation>헤드 비교 중</translation>
    </message>
    <message>
        <source>Opening the heads</source>
        <translation>여러 헤드 여는 중</translation>
    </message>
    <message>
        <source>Return</source>
        <translation>Return</translation>
    </message>
    <message>
        <source>Enter</source>
        <translation>Enter</translation>
    </message>
    <message>
        <source>full stop</source>
        <translation>마침표</translation>
    </message>
    <message>
        <source>Everywhere</source>
        <translation>모든 곳</translation>
    </message>
    <message>
        <source>Next control</source>
        <translation>다음 컨트롤</translation>
    </message>
    <message>
        <source>Tab</source>
        <translation>Tab</translation>
    </message>
    <message>
        <source>Press a button, tick a box</source>
        <translation>버튼 누르기, 확인란 선택</translation>
    </message>
    <message>
        <source>Space</source>
        <translation>Space</translation>
    </message>
    <message>
        <source>Close a dialog</source>
        <translation>대화 상자 닫기</translation>
    </message>
    <message>
        <source>Esc</source>
        <translation>Esc</translation>
    </message>
    <message>
        <source>Press the default button of a dialog</source>
        <translation>대화 상자의 기본 버튼 누르기</translation>
    </message>
    <message>
        <source>Previous query, next query</source>
        <translation>이전 쿼리, 다음 쿼리</translation>
    </message>
    <message>
        <source>Previous key, next key</source>
        <translation>이전 키, 다음 키</translation>
    </message>
    <message>
        <source>Zoom in, zoom out</source>
        <translation>확대, 축소</translation>
    </message>
    <message>
        <source>Clear the selection</source>
        <translation>선택 해제</translation>
    </message>
    <message>
        <source>Text strip</source>
        <translation>텍스트 띠</translation>
    </message>
    <message>
        <source>Extend the queries</source>
        <translation>쿼리 확장</translation>
    </message>
    <message>
        <source>Strongest key out of view, above or below</source>
        <translation>화면 밖에서 가장 강한 키, 위쪽 또는 아래쪽</translation>
    </message>
    <message>
        <source>Scroll</source>
        <translation>스크롤</translation>
    </message>
    <message>
        <source>Home</source>
        <translation>Home</translation>
    </message>
    <message>
        <source>End</source>
        <translation>End</translation>
    </message>
    <message>
        <source>Previous token, next token</source>
        <translation>이전 토큰, 다음 토큰</translation>
    </message>
    <message>
        <source>Lists of keys</source>
        <translation>키 목록</translation>
    </message>
    <message>
        <source>Previous page, next page</source>
        <translation>이전 페이지, 다음 페이지</translation>
    </message>
    <message>
        <source>Choose the key</source>
        <translation>키 선택</translation>
    </message>
    <message>
        <source>Images</source>
        <translation>이미지</translation>
    </message>
    <message>
        <source>Next patch</source>
        <translation>다음 패치</translation>
    </message>
    <message>
        <source>Head grid</source>
        <translation>헤드 격자</translation>
    </message>
    <message>
        <source>First head, last head of a layer</source>
        <translation>레이어의 첫 헤드, 마지막 헤드</translation>
    </message>
    <message>
        <source>Switch layer off or on</source>
        <translation>레이어 끄기 또는 켜기</translation>
    </message>
    <message>
        <source>Pruning curve</source>
        <translation>프루닝 곡선</translation>
    </message>
    <message>
        <source>One head fewer, one more</source>
        <translation>헤드 하나 적게, 하나 많게</translation>
    </message>
    <message>
        <source>Five heads fewer, five more</source>
        <translation>헤드 다섯 개 적게, 다섯 개 많게</translation>
    </message>
    <message>
        <source>No heads off, k* heads off</source>
        <translation>끈 헤드 없음, 헤드 k*개 끄기</translation>
    </message>
    <message>
        <source>Masks</source>
        <translation>마스크</translation>
    </message>
    <message>
        <source>Apply the mask</source>
        <translation>마스크 적용</translation>
    </message>
    <message>
        <source>Delete the mask</source>
        <translation>마스크 삭제</translation>
    </message>
    <message>
        <source>Del</source>
        <translation>Del</translation>
    </message>
    <message>
        <source>Tables</source>
        <translation>표</translation>
    </message>
    <message>
        <source>Previous row, next row</source>
        <translation>이전 행, 다음 행</translation>
    </message>
    <message>
        <source>Open the row</source>
        <translation>행 열기</translation>
    </message>
    <message>
        <source>Sort by another column</source>
        <translation>다른 열로 정렬</translation>
    </message>
    <message>
        <source>Reverse the order</source>
        <translation>순서 뒤집기</translation>
    </message>
    <message>
        <source>Text fields</source>
        <translation>텍스트 입력란</translation>
    </message>
    <message>
        <source>Run or compare</source>
        <translation>실행 또는 비교</translation>
    </message>
    <message>
        <source>New line</source>
        <translation>줄 바꿈</translation>
    </message>
    <message>
        <source>Open {name}</source>
        <translation>{name} 열기</translation>
    </message>
    <message>
        <source>attention sink</source>
        <translation>어텐션 싱크</translation>
    </message>
    <message>
        <source>Best at {behaviour}: {head}, {value}</source>
        <translation>{behaviour} 최고: {head}, {value}</translation>
    </message>
    <message>
        <source>Colour heads by {metric}</source>
        <translation>헤드 색상 기준: {metric}</translation>
    </message>
    <message>
        <source>metric</source>
        <translation>지표</translation>
    </message>
    <message>
        <source>at {level}</source>
        <translation>{level}에서</translation>
    </message>
    <message>
        <source>in layer {layer}</source>
        <translation>레이어 {layer}</translation>
    </message>
    <message>
        <source>Go to head {head}</source>
        <translation>헤드 {head} 보기</translation>
    </message>
    <message>
        <source>Matches</source>
        <translation>검색 결과</translation>
    </message>
    <message>
        <source>{count} of {total}</source>
        <translation>{total}개 중 {count}개</translation>
    </message>
    <message>
        <source>Nothing matches “{query}”. Similar:</source>
        <translation>“{query}” 검색 결과가 없습니다. 비슷한 항목:</translation>
    </message>
    <message>
        <source>Head details</source>
        <translation>헤드 세부 정보</translation>
    </message>
    <message>
        <source>Export the figure of All heads instead</source>
        <translation>대신 ‘모든 헤드’의 그림을 내보내십시오</translation>
    </message>
    <message>
        <source>Not measured yet</source>
        <translation>아직 측정되지 않았습니다</translation>
    </message>
    <message>
        <source>The role of the head appears here once all heads are measured.</source>
        <translation>모든 헤드가 측정되면 여기에 헤드의 역할이 나타납니다.</translation>
    </message>
    <message>
        <source>cross-attention head</source>
        <translation>크로스 어텐션 헤드</translation>
    </message>
    <message>
        <source>self-attention head</source>
        <translation>셀프 어텐션 헤드</translation>
    </message>
    <message>
        <source>Ticks: all {many}</source>
        <translation>눈금: 전체 {many}</translation>
    </message>
    <message>
        <source>rank {rank:,} of {total:,}, largest first</source>
        <translation>큰 순서로 {total:,}개 중 {rank:,}위</translation>
    </message>
    <message>
        <source>Window: {:,} back, {:,} ahead</source>
        <translation>윈도: 이전 {:,}, 이후 {:,}</translation>
    </message>
    <message>
        <source>Window: {:,} back</source>
        <translation>윈도: 이전 {:,}</translation>
    </message>
    <message>
        <source>Streaming: first {:,} and latest {:,} keys</source>
        <translation>스트리밍: 처음 키 {:,}개와 최근 키 {:,}개</translation>
    </message>
    <message>
        <source>Within chunks of {:,}</source>
        <translation>{:,}개 단위의 청크 안</translation>
    </message>
    <message>
        <source>Scores capped at ±{:g}</source>
        <translation>스코어 한도 ±{:g}</translation>
    </message>
    <message>
        <source>Sink logit: {:.1f} % of a row, its keys {:.1f} %</source>
        <translation>싱크 로짓: 행의 {:.1f} %, 키는 {:.1f} %</translation>
    </message>
    <message>
        <source>Choose a query in the map or in the text.</source>
        <translation>맵이나 텍스트에서 쿼리를 선택하십시오.</translation>
    </message>
    <message>
        <source>Top keys</source>
        <translation>상위 키</translation>
    </message>
    <message>
        <source>Export the figure of Links instead</source>
        <translation>대신 ‘연결선’의 그림을 내보내십시오</translation>
    </message>
    <message>
        <source>reading one row</source>
        <translation>행 하나 읽는 중</translation>
    </message>
    <message>
        <source>before the text</source>
        <translation>텍스트 앞</translation>
    </message>
    <message>
        <source>keys in the {text}:</source>
        <translation>{text}의 키:</translation>
    </message>
    <message>
        <source>Share of a row's weight that the role explains, averaged over rows</source>
        <translation>행의 가중치 중 역할로 설명되는 비율, 행들의 평균</translation>
    </message>
    <message>
        <source>mean_i Σ_{j ∈ role} |a_ij| / Σ_j |a_ij|</source>
        <translation>mean_i Σ_{j ∈ role} |a_ij| / Σ_j |a_ij|</translation>
    </message>
    <message>
        <source>Voita et al. 2019; sixteen-heads.md</source>
        <translation>Voita et al. 2019; sixteen-heads.md</translation>
    </message>
    <message>
        <source>Notable heads</source>
        <translation>주목할 헤드</translation>
    </message>
    <message>
        <source>Export the figure of Hourglass instead</source>
        <translation>대신 ‘모래시계’의 그림을 내보내십시오</translation>
    </message>
    <message>
        <source>No notable heads</source>
        <translation>주목할 헤드가 없습니다</translation>
    </message>
    <message>
        <source>No head has a clear role on this text.</source>
        <translation>이 텍스트에서 뚜렷한 역할을 하는 헤드가 없습니다.</translation>
    </message>
    <message>
        <source>No notable heads yet</source>
        <translation>아직 주목할 헤드가 없습니다</translation>
    </message>
    <message>
        <source>The clearest heads are listed once they are measured.</source>
        <translation>헤드가 측정되면 가장 뚜렷한 헤드가 나열됩니다.</translation>
    </message>
    <message>
        <source>drawing heads</source>
        <translation>헤드 그리는 중</translation>
    </message>
    <message>
        <source>Display</source>
        <translation>표시</translation>
    </message>
    <message>
        <source>It sets the colours of the other panes</source>
        <translation>다른 패널의 색상을 설정합니다</translation>
    </message>
    <message>
        <source>One scale for all heads</source>
        <translation>모든 헤드에 같은 척도</translation>
    </message>
    <message>
        <source>from the data</source>
        <translation>데이터에서 결정</translation>
    </message>
    <message>
        <source>Maximum of the scale</source>
        <translation>척도의 최댓값</translation>
    </message>
    <message>
        <source>Palette</source>
        <translation>색상 맵</translation>
    </message>
    <message>
        <source>Scale</source>
        <translation>척도</translation>
    </message>
    <message>
        <source>Maximum</source>
        <translation>최댓값</translation>
    </message>
    <message>
        <source>Texts</source>
        <translation>텍스트</translation>
    </message>
    <message>
        <source>A single text</source>
        <translation>텍스트가 하나입니다</translation>
    </message>
    <message>
        <source>Run the model on a text file to search and step through its texts.</source>
        <translation>텍스트 파일에 모델을 실행하면 여러 텍스트를 검색하고 차례로 볼 수 있습니다.</translation>
    </message>
    <message>
        <source>Find a text</source>
        <translation>텍스트 찾기</translation>
    </message>
    <message>
        <source>Words of a text (Ctrl+F). Enter opens the first match</source>
        <translation>텍스트에 있는 단어(Ctrl+F). Enter 키로 첫 결과를 엽니다</translation>
    </message>
    <message>
        <source>Enter or a click opens a text; Ctrl+PgUp and Ctrl+PgDown step through all</source>
        <translation>Enter 키나 클릭으로 텍스트를 엽니다. Ctrl+PgUp과 Ctrl+PgDown으로 모든 텍스트를 차례로 봅니다</translation>
    </message>
    <message>
        <source>Text number</source>
        <translation>텍스트 번호</translation>
    </message>
    <message>
        <source>Tokens</source>
        <translation>토큰</translation>
    </message>
    <message>
        <source>{found:,} of {every:,} texts</source>
        <translation>텍스트 {every:,}개 중 {found:,}개</translation>
    </message>
    <message>
        <source>{every:,} texts</source>
        <translation>텍스트 {every:,}개</translation>
    </message>
    <message>
        <source>No text contains “{words}”</source>
        <translation>“{words}” 검색 결과가 없습니다</translation>
    </message>
    <message>
        <source>Texts: {count}</source>
        <translation>텍스트: {count}</translation>
    </message>
    <message>
        <source>Text {number:,} of {total:,}</source>
        <translation>텍스트 {number:,}/{total:,}</translation>
    </message>
    <message>
        <source>GPU (mps)</source>
        <translation>GPU (mps)</translation>
    </message>
    <message>
        <source>Run the model on a text to see its attention</source>
        <translation>텍스트에 모델을 실행하면 어텐션이 표시됩니다</translation>
    </message>
    <message>
        <source>Open a checkpoint or a capture to see its attention</source>
        <translation>체크포인트나 캡처를 열면 어텐션이 표시됩니다</translation>
    </message>
    <message>
        <source>No heads: all heads of this layer were pruned</source>
        <translation>헤드 없음: 이 레이어의 모든 헤드가 프루닝되었습니다</translation>
    </message>
    <message>
        <source>query {number:,} {words}</source>
        <translation>쿼리 {number:,} {words}</translation>
    </message>
    <message>
        <source>key {number:,} {words}</source>
        <translation>키 {number:,} {words}</translation>
    </message>
    <message>
        <source>{tokens}, {source:,} states read</source>
        <translation>{tokens}, 읽은 상태 {source:,}개</translation>
    </message>
    <message>
        <source>{tokens}, {source:,} in source</source>
        <translation>{tokens}, 원문 {source:,}개</translation>
    </message>
    <message>
        <source>{tokens}, one of {count:,} texts</source>
        <translation>{tokens}, 텍스트 {count:,}개 중 하나</translation>
    </message>
    <message>
        <source>{tokens}, {done} of {layers} layers</source>
        <translation>{tokens}, 레이어 {done}/{layers}</translation>
    </message>
    <message>
        <source>{tokens} captured in {time} s</source>
        <translation>{tokens} 캡처됨({time}초)</translation>
    </message>
    <message>
        <source>{tokens} captured</source>
        <translation>{tokens} 캡처됨</translation>
    </message>
    <message>
        <source>same text</source>
        <translation>같은 텍스트</translation>
    </message>
    <message>
        <source>two texts</source>
        <translation>두 텍스트</translation>
    </message>
    <message>
        <source>same text, different tokens</source>
        <translation>같은 텍스트, 다른 토큰</translation>
    </message>
    <message>
        <source>{tokens} and {more:,}</source>
        <translation>{tokens} 및 {more:,}개</translation>
    </message>
    <message>
        <source>a model</source>
        <translation>모델</translation>
    </message>
    <message>
        <source>unnamed data</source>
        <translation>이름 없는 데이터</translation>
    </message>
    <message>
        <source>{model} on {data}</source>
        <translation>{model}, 데이터 {data}</translation>
    </message>
    <message>
        <source>Study {name}</source>
        <translation>스터디 {name}</translation>
    </message>
    <message>
        <source>padding</source>
        <translation>패딩</translation>
    </message>
    <message>
        <source>No model</source>
        <translation>모델 없음</translation>
    </message>
    <message>
        <source>study</source>
        <translation>스터디</translation>
    </message>
    <message>
        <source>text {number:,} of {count:,}</source>
        <translation>텍스트 {number:,}/{count:,}</translation>
    </message>
    <message>
        <source>Accuracy</source>
        <translation>정확도</translation>
    </message>
    <message>
        <source>Loss per {noun}</source>
        <translation>{noun}당 손실</translation>
    </message>
    <message>
        <source>Masked {noun} accuracy</source>
        <translation>마스크된 {noun} 정확도</translation>
    </message>
    <message>
        <source>Accuracy of {noun} labels</source>
        <translation>{noun} 레이블 정확도</translation>
    </message>
    <message>
        <source>Start and end accuracy</source>
        <translation>시작과 끝 정확도</translation>
    </message>
    <message>
        <source>Self-retrieval accuracy</source>
        <translation>자기 검색 정확도</translation>
    </message>
    <message>
        <source>Classifiers need labelled texts, language models any text.</source>
        <translation>분류기에는 레이블이 있는 텍스트가, 언어 모델에는 아무 텍스트나 필요합니다.</translation>
    </message>
    <message>
        <source>It needs a table of image files and labels (columns image,label).</source>
        <translation>이미지 파일과 레이블의 표(image,label 열)가 필요합니다.</translation>
    </message>
    <message>
        <source>It needs a table of sound files and labels (columns audio,label).</source>
        <translation>소리 파일과 레이블의 표(audio,label 열)가 필요합니다.</translation>
    </message>
    <message>
        <source>Save a model without the heads that are off</source>
        <translation>꺼진 헤드를 제거한 모델 저장</translation>
    </message>
    <message>
        <source>Changed</source>
        <translation>바뀐 예측</translation>
    </message>
    <message>
        <source>Removed</source>
        <translation>제거됨</translation>
    </message>
    <message>
        <source>Export the pruning curve instead</source>
        <translation>대신 프루닝 곡선을 내보내십시오</translation>
    </message>
    <message>
        <source>Choose data…</source>
        <translation>데이터 선택…</translation>
    </message>
    <message>
        <source>Open another…</source>
        <translation>다른 모델 열기…</translation>
    </message>
    <message>
        <source>This model cannot be evaluated here</source>
        <translation>이 모델은 여기서 평가할 수 없습니다</translation>
    </message>
    <message>
        <source>It reads two texts.</source>
        <translation>두 개의 텍스트를 읽는 모델입니다.</translation>
    </message>
    <message>
        <source>A capture has no weights, so it cannot be evaluated.</source>
        <translation>캡처에는 모델 가중치가 없어 평가할 수 없습니다.</translation>
    </message>
    <message>
        <source>Open the checkpoint to switch heads off</source>
        <translation>헤드를 끄려면 체크포인트를 여십시오</translation>
    </message>
    <message>
        <source>Choose data to evaluate the model on</source>
        <translation>모델을 평가할 데이터를 선택하십시오</translation>
    </message>
    <message>
        <source>{metric} with {heads} off</source>
        <translation>{metric}, {heads} 끔</translation>
    </message>
    <message>
        <source>{metric}, full model</source>
        <translation>{metric}, 전체 모델</translation>
    </message>
    <message>
        <source>{noun}s evaluated</source>
        <translation>평가한 {noun}</translation>
    </message>
    <message>
        <source>Reading the data</source>
        <translation>데이터 읽는 중</translation>
    </message>
    <message>
        <source>0 (no heads off)</source>
        <translation>0(끈 헤드 없음)</translation>
    </message>
    <message>
        <source>none</source>
        <translation>없음</translation>
    </message>
    <message>
        <source>{lost:,} newly wrong, {won:,} newly right; p {p}</source>
        <translation>새로 틀림 {lost:,}, 새로 맞음 {won:,}; p {p}</translation>
    </message>
    <message>
        <source>{score} on the same {noun}s</source>
        <translation>같은 {noun} 기준 {score}</translation>
    </message>
    <message>
        <source>{seen:,} of {total:,} {noun}s</source>
        <translation>{noun} {total:,}개 중 {seen:,}개</translation>
    </message>
    <message>
        <source>interim, not corrected for early stopping</source>
        <translation>중간 결과, 조기 중지에 대해 보정되지 않음</translation>
    </message>
    <message>
        <source>stopped</source>
        <translation>중지됨</translation>
    </message>
    <message>
        <source>loss, nats</source>
        <translation>손실, nat</translation>
    </message>
    <message>
        <source>full model</source>
        <translation>전체 모델</translation>
    </message>
    <message>
        <source>newly wrong</source>
        <translation>새로 틀림</translation>
    </message>
    <message>
        <source>newly right</source>
        <translation>새로 맞음</translation>
    </message>
    <message>
        <source>McNemar p</source>
        <translation>McNemar p</translation>
    </message>
    <message>
        <source>{score} after {seen:,} of {total:,}</source>
        <translation>{total:,}개 중 {seen:,}개 평가 후 {score}</translation>
    </message>
    <message>
        <source>nats</source>
        <translation>nat</translation>
    </message>
    <message>
        <source>{value} {unit}, {low} to {high}</source>
        <translation>{value} {unit}, {low}~{high}</translation>
    </message>
    <message>
        <source>perplexity {value}</source>
        <translation>퍼플렉시티 {value}</translation>
    </message>
    <message>
        <source>perplexity {value} ({low} to {high})</source>
        <translation>퍼플렉시티 {value}({low}~{high})</translation>
    </message>
    <message>
        <source>{n:,} of {among:,} windows,</source>
        <translation>윈도 {among:,}개 중 {n:,}개,</translation>
    </message>
    <message>
        <source>{n:,} of {among:,} texts,</source>
        <translation>텍스트 {among:,}개 중 {n:,}개,</translation>
    </message>
    <message>
        <source>random seed {seed}</source>
        <translation>무작위 시드 {seed}</translation>
    </message>
    <message>
        <source>nothing</source>
        <translation>없음</translation>
    </message>
    <message>
        <source>{size} parameters</source>
        <translation>파라미터 {size}</translation>
    </message>
    <message>
        <source>{size} parameters ({share:.1f} %)</source>
        <translation>파라미터 {size} ({share:.1f} %)</translation>
    </message>
    <message>
        <source>Save masks to compare their scores.</source>
        <translation>마스크를 저장하면 점수를 비교할 수 있습니다.</translation>
    </message>
    <message>
        <source>Delete mask</source>
        <translation>마스크 삭제</translation>
    </message>
    <message>
        <source>no heads off</source>
        <translation>끈 헤드 없음</translation>
    </message>
    <message>
        <source>{name}: {heads}
removes {saved}</source>
        <translation>{name}: {heads}
제거: {saved}</translation>
    </message>
    <message>
        <source>evaluating</source>
        <translation>평가 중</translation>
    </message>
    <message>
        <source>not evaluated</source>
        <translation>평가되지 않음</translation>
    </message>
    <message>
        <source>{percent:.0f} % evaluated</source>
        <translation>{percent:.0f} % 평가됨</translation>
    </message>
    <message>
        <source>Click or Space: switch a head off. Drag: several heads. Shift: a whole layer.</source>
        <translation>클릭 또는 Space: 헤드 끄기. 드래그: 여러 헤드. Shift: 레이어 전체.</translation>
    </message>
    <message>
        <source>No head is measured yet</source>
        <translation>아직 측정된 헤드가 없습니다</translation>
    </message>
    <message>
        <source>Open a model to switch its heads off</source>
        <translation>헤드를 끄려면 모델을 여십시오</translation>
    </message>
    <message>
        <source>Each cell is a head.</source>
        <translation>각 칸은 헤드 하나입니다.</translation>
    </message>
    <message>
        <source>Undo (Ctrl+Z)</source>
        <translation>실행 취소(Ctrl+Z)</translation>
    </message>
    <message>
        <source>Redo (Ctrl+Shift+Z)</source>
        <translation>다시 실행(Ctrl+Shift+Z)</translation>
    </message>
    <message>
        <source>Switch all heads on (Ctrl+Shift+A)</source>
        <translation>모든 헤드 켜기(Ctrl+Shift+A)</translation>
    </message>
    <message>
        <source>Colour</source>
        <translation>색상</translation>
    </message>
    <message>
        <source>score</source>
        <translation>점수</translation>
    </message>
    <message>
        <source>low</source>
        <translation>하한</translation>
    </message>
    <message>
        <source>high</source>
        <translation>상한</translation>
    </message>
    <message>
        <source>{n:,} of {total:,} switched off</source>
        <translation>{total:,}개 중 {n:,}개 꺼짐</translation>
    </message>
    <message>
        <source>Stop and keep what was measured</source>
        <translation>중지하고 측정한 결과 유지</translation>
    </message>
    <message>
        <source>Compute the importance of every head</source>
        <translation>모든 헤드의 중요도 계산</translation>
    </message>
    <message>
        <source>Choose data first</source>
        <translation>먼저 데이터를 선택하십시오</translation>
    </message>
    <message>
        <source>Another model: all heads are on</source>
        <translation>다른 모델: 모든 헤드가 켜져 있습니다</translation>
    </message>
    <message>
        <source>Another model: {n:,} of its heads are off</source>
        <translation>다른 모델: 헤드 {n:,}개가 꺼져 있습니다</translation>
    </message>
    <message>
        <source>Ctrl+Z restores the previous mask ({n:,} off)</source>
        <translation>Ctrl+Z로 이전 마스크 복원({n:,}개 꺼짐)</translation>
    </message>
    <message>
        <source>Parameters</source>
        <translation>파라미터</translation>
    </message>
    <message>
        <source>share of head parameters removed</source>
        <translation>제거한 헤드 파라미터의 비율</translation>
    </message>
    <message>
        <source>share of head FLOPs removed</source>
        <translation>제거한 헤드 FLOPs의 비율</translation>
    </message>
    <message>
        <source>Time</source>
        <translation>시간</translation>
    </message>
    <message>
        <source>ms per batch of 16 texts, one core</source>
        <translation>텍스트 16개 배치당 ms, 코어 하나</translation>
    </message>
    <message>
        <source>least important first</source>
        <translation>덜 중요한 것부터</translation>
    </message>
    <message>
        <source>The current mask is not on this curve; click or press Right to return</source>
        <translation>현재 마스크는 이 곡선에 없습니다. 돌아가려면 클릭하거나 오른쪽 화살표 키를 누르십시오</translation>
    </message>
    <message>
        <source>full model − 1 point</source>
        <translation>전체 모델 − 1 %p</translation>
    </message>
    <message>
        <source>‹  {n} off  ›</source>
        <translation>‹  {n}개 꺼짐  ›</translation>
    </message>
    <message>
        <source>{n} random orders (10–90 %)</source>
        <translation>무작위 순서 {n}개(10–90 %)</translation>
    </message>
    <message>
        <source>{n} of {total} heads off</source>
        <translation>헤드 {total}개 중 {n}개 꺼짐</translation>
    </message>
    <message>
        <source>no head within 1 point of the full model</source>
        <translation>전체 모델과의 차이가 1 %p 이내인 헤드 없음</translation>
    </message>
    <message>
        <source>{n} heads within 1 point (95 % confidence)</source>
        <translation>1 %p 이내에서 헤드 {n}개(95 % 신뢰 수준)</translation>
    </message>
    <message>
        <source>{n} heads within 1 point (none with 95 % confidence)</source>
        <translation>1 %p 이내에서 헤드 {n}개(95 % 신뢰 수준으로는 없음)</translation>
    </message>
    <message>
        <source>{n} heads within 1 point ({sure} with 95 % confidence)</source>
        <translation>1 %p 이내에서 헤드 {n}개(95 % 신뢰 수준으로는 {sure}개)</translation>
    </message>
    <message>
        <source>accuracy: full model {whole:.1f} %, all heads off {last:.1f} %</source>
        <translation>정확도: 전체 모델 {whole:.1f} %, 모든 헤드 끔 {last:.1f} %</translation>
    </message>
    <message>
        <source>accuracy so far: full model {whole:.1f} %, {n:,} heads off {last:.1f} %</source>
        <translation>지금까지의 정확도: 전체 모델 {whole:.1f} %, 헤드 {n:,}개 끔 {last:.1f} %</translation>
    </message>
    <message>
        <source>{heads} off: {value:.1f} % ({low:.1f} to {high:.1f})</source>
        <translation>{heads} 끔: {value:.1f} % ({low:.1f}~{high:.1f})</translation>
    </message>
    <message>
        <source>pruned {smaller:.3g} ms, full model {whole:.3g} ms, measured alternately</source>
        <translation>프루닝 후 {smaller:.3g} ms, 전체 모델 {whole:.3g} ms, 번갈아 측정</translation>
    </message>
    <message>
        <source>heads off</source>
        <translation>꺼진 헤드</translation>
    </message>
    <message>
        <source>ms full model</source>
        <translation>ms 전체 모델</translation>
    </message>
    <message>
        <source>ms pruned</source>
        <translation>ms 프루닝 후</translation>
    </message>
    <message>
        <source>Switch heads off one by one, least important first ({score}), and in 20 random orders for comparison.</source>
        <translation>덜 중요한 헤드부터({score}) 하나씩 끄고, 비교를 위해 20개의 무작위 순서로도 끕니다.</translation>
    </message>
    <message>
        <source>Measure…</source>
        <translation>측정…</translation>
    </message>
    <message>
        <source>least important first; drag the line to change how many heads are off</source>
        <translation>덜 중요한 것부터; 선을 드래그하여 끌 헤드의 수를 바꿉니다</translation>
    </message>
    <message>
        <source>Median measured time of models without these heads</source>
        <translation>이 헤드들이 없는 모델의 측정 시간 중앙값</translation>
    </message>
    <message>
        <source>The parameters per head of this model are unknown</source>
        <translation>이 모델은 헤드당 파라미터 수를 알 수 없습니다</translation>
    </message>
    <message>
        <source>Not timed; measure the time with hgviz curve --time</source>
        <translation>시간이 측정되지 않았습니다. hgviz curve --time으로 측정하십시오</translation>
    </message>
    <message>
        <source>There is no curve yet</source>
        <translation>아직 곡선이 없습니다</translation>
    </message>
    <message>
        <source>No pruning curve yet</source>
        <translation>아직 프루닝 곡선이 없습니다</translation>
    </message>
    <message>
        <source>Measure the heads first, then compare with random pruning orders.</source>
        <translation>먼저 헤드를 측정한 다음 무작위 프루닝 순서와 비교하십시오.</translation>
    </message>
    <message>
        <source>time</source>
        <translation>시간</translation>
    </message>
    <message>
        <source>Changes</source>
        <translation>바뀐 예측</translation>
    </message>
    <message>
        <source>Pruning is already running</source>
        <translation>프루닝이 이미 실행 중입니다</translation>
    </message>
    <message>
        <source>Pruning {heads}</source>
        <translation>{heads} 프루닝</translation>
    </message>
    <message>
        <source>Stopping</source>
        <translation>중지 중</translation>
    </message>
    <message>
        <source>Pruning had already finished: {path} was written</source>
        <translation>프루닝이 이미 완료되어 {path}에 저장되었습니다</translation>
    </message>
    <message>
        <source>Stopped: nothing was written</source>
        <translation>중지됨: 저장된 것이 없습니다</translation>
    </message>
    <message>
        <source>Smaller</source>
        <translation>작은 모델</translation>
    </message>
    <message>
        <source>without the weights of these heads; opens in hgviz</source>
        <translation>이 헤드들의 가중치 없음; hgviz에서 열림</translation>
    </message>
    <message>
        <source>Zeroed</source>
        <translation>0으로 채움</translation>
    </message>
    <message>
        <source>the original files with these weights at 0; opens in any program</source>
        <translation>이 가중치가 0인 원본 파일; 모든 프로그램에서 열림</translation>
    </message>
    <message>
        <source>Add the mean output of the heads to the bias</source>
        <translation>헤드의 평균 출력을 편향에 더하기</translation>
    </message>
    <message>
        <source>Rescale the remaining heads by least squares</source>
        <translation>최소 제곱법으로 남은 헤드의 크기 조정</translation>
    </message>
    <message>
        <source>reviews that come with hgviz</source>
        <translation>hgviz에 포함된 리뷰</translation>
    </message>
    <message>
        <source>Open the smaller model</source>
        <translation>작은 모델 열기</translation>
    </message>
    <message>
        <source>Open the zeroed model</source>
        <translation>0으로 채운 모델 열기</translation>
    </message>
    <message>
        <source>Writes a new folder and verifies it against this model before saving. {name} is not changed.</source>
        <translation>새 폴더에 쓰며, 저장하기 전에 이 모델과 대조하여 검증합니다. {name}의 내용은 바뀌지 않습니다.</translation>
    </message>
    <message>
        <source>Prune {n} of {total} heads</source>
        <translation>헤드 {total}개 중 {n}개 프루닝</translation>
    </message>
    <message>
        <source>Compensation</source>
        <translation>보정</translation>
    </message>
    <message>
        <source>Verified on</source>
        <translation>검증 데이터</translation>
    </message>
    <message>
        <source>New folder</source>
        <translation>새 폴더</translation>
    </message>
    <message>
        <source>Choose…</source>
        <translation>선택…</translation>
    </message>
    <message>
        <source>Prune and save</source>
        <translation>프루닝 후 저장</translation>
    </message>
    <message>
        <source>Choose a new folder.</source>
        <translation>새 폴더를 선택하십시오.</translation>
    </message>
    <message>
        <source>Copied</source>
        <translation>복사됨</translation>
    </message>
    <message>
        <source>Choose a folder for the pruned model</source>
        <translation>프루닝한 모델을 저장할 폴더 선택</translation>
    </message>
    <message>
        <source>Pruned {heads}</source>
        <translation>{heads} 프루닝됨</translation>
    </message>
    <message>
        <source>Compare with the original</source>
        <translation>원본과 비교</translation>
    </message>
    <message>
        <source>{n:,} of {all:,} windows of {texts:,} texts</source>
        <translation>텍스트 {texts:,}개의 윈도 {all:,}개 중 {n:,}개</translation>
    </message>
    <message>
        <source>Compared on {texts} from {source}.</source>
        <translation>{source}의 {texts}에서 비교했습니다.</translation>
    </message>
    <message>
        <source>The logits equal those of the masked model exactly.</source>
        <translation>로짓이 마스크된 모델의 로짓과 정확히 같습니다.</translation>
    </message>
    <message>
        <source> ({rough:.1e} in float32)</source>
        <translation> (float32에서는 {rough:.1e})</translation>
    </message>
    <message>
        <source>The logits differ from those of the masked model by at most {most:.1e} in {dtype}{rough} (limit {limit:.1e}).</source>
        <translation>마스크된 모델과의 로짓 차이는 {dtype}에서 최대 {most:.1e}{rough}입니다(한계 {limit:.1e}).</translation>
    </message>
    <message>
        <source>Before</source>
        <translation>프루닝 전</translation>
    </message>
    <message>
        <source>After</source>
        <translation>프루닝 후</translation>
    </message>
    <message>
        <source>Bytes</source>
        <translation>바이트</translation>
    </message>
    <message>
        <source>Batch size {n}</source>
        <translation>배치 크기 {n}</translation>
    </message>
    <message>
        <source>Times: median per forward pass, PyTorch float32, one core.</source>
        <translation>시간: 순전파당 중앙값, PyTorch float32, 코어 하나.</translation>
    </message>
    <message>
        <source>No speed-up: the zeroed heads are still computed.</source>
        <translation>빨라지지 않음: 0으로 채운 헤드도 계산됩니다.</translation>
    </message>
    <message>
        <source>Not copied: {files}.</source>
        <translation>복사되지 않음: {files}.</translation>
    </message>
    <message>
        <source>unchanged</source>
        <translation>변화 없음</translation>
    </message>
    <message>
        <source>No heads are left, so there is no attention.</source>
        <translation>남은 헤드가 없어 어텐션이 없습니다.</translation>
    </message>
    <message>
        <source>{layers} have no heads left and only add their bias.</source>
        <translation>{layers}: 남은 헤드가 없어 편향만 더합니다.</translation>
    </message>
    <message>
        <source>{layers} has no heads left and only adds its bias.</source>
        <translation>{layers}: 남은 헤드가 없어 편향만 더합니다.</translation>
    </message>
    <message>
        <source>the image of the window could not be saved</source>
        <translation>창의 이미지를 저장할 수 없습니다</translation>
    </message>
    <message>
        <source>load the libraries</source>
        <translation>라이브러리 불러오기</translation>
    </message>
    <message>
        <source>find icons, sample and licences</source>
        <translation>아이콘, 샘플, 라이선스 찾기</translation>
    </message>
    <message>
        <source>capture a text</source>
        <translation>텍스트 캡처</translation>
    </message>
    <message>
        <source>read the capture</source>
        <translation>캡처 읽기</translation>
    </message>
    <message>
        <source>attribute a prediction</source>
        <translation>예측의 기여도 분석</translation>
    </message>
    <message>
        <source>write a report</source>
        <translation>보고서 쓰기</translation>
    </message>
    <message>
        <source>open a transformers model</source>
        <translation>transformers 모델 열기</translation>
    </message>
    <message>
        <source>draw the window</source>
        <translation>창 그리기</translation>
    </message>
    <message>
        <source>draw a chart</source>
        <translation>차트 그리기</translation>
    </message>
    <message>
        <source>Choose another folder with --headless DIR</source>
        <translation>--headless DIR로 다른 폴더를 선택하십시오</translation>
    </message>
    <message>
        <source>Sound</source>
        <translation>소리</translation>
    </message>
    <message>
        <source>a half</source>
        <translation>2분의 1</translation>
    </message>
    <message>
        <source>a third</source>
        <translation>3분의 1</translation>
    </message>
    <message>
        <source>a quarter</source>
        <translation>4분의 1</translation>
    </message>
    <message>
        <source>a fifth</source>
        <translation>5분의 1</translation>
    </message>
    <message>
        <source>a sixth</source>
        <translation>6분의 1</translation>
    </message>
    <message>
        <source>an eighth</source>
        <translation>8분의 1</translation>
    </message>
    <message>
        <source>a ninth</source>
        <translation>9분의 1</translation>
    </message>
    <message>
        <source>a tenth</source>
        <translation>10분의 1</translation>
    </message>
    <message>
        <source>a sixteenth</source>
        <translation>16분의 1</translation>
    </message>
    <message>
        <source>a 25th</source>
        <translation>25분의 1</translation>
    </message>
    <message>
        <source>a 36th</source>
        <translation>36분의 1</translation>
    </message>
    <message>
        <source>a 64th</source>
        <translation>64분의 1</translation>
    </message>
    <message>
        <source>source</source>
        <translation>원문</translation>
    </message>
    <message>
        <source>layer {number}</source>
        <translation>레이어 {number}</translation>
    </message>
    <message>
        <source>layers {first} to {last}</source>
        <translation>레이어 {first}~{last}</translation>
    </message>
    <message>
        <source>layers {before} and {last}</source>
        <translation>레이어 {before}, {last}</translation>
    </message>
    <message>
        <source>{n} min</source>
        <translation>{n}분</translation>
    </message>
    <message>
        <source>about {time} left</source>
        <translation>약 {time} 남음</translation>
    </message>
    <message>
        <source>null group</source>
        <translation>널 그룹</translation>
    </message>
    <message>
        <source>{unit} {first:,} to {last:,}</source>
        <translation>{unit} {first:,}~{last:,}</translation>
    </message>
    <message>
        <source>position {number:,}</source>
        <translation>위치 {number:,}</translation>
    </message>
    <message>
        <source>second text</source>
        <translation>두 번째 텍스트</translation>
    </message>
    <message>
        <source>in {word}</source>
        <translation>{word} 안</translation>
    </message>
    <message>
        <source>after {word}</source>
        <translation>{word} 뒤</translation>
    </message>
    <message>
        <source>Prediction:</source>
        <translation>예측:</translation>
    </message>
    <message>
        <source>Label of this {unit}:</source>
        <translation>이 {unit}의 레이블:</translation>
    </message>
    <message>
        <source>Prediction for this {unit}:</source>
        <translation>이 {unit}의 예측:</translation>
    </message>
    <message>
        <source>Next-{unit} prediction:</source>
        <translation>다음 {unit} 예측:</translation>
    </message>
    <message>
        <source>class {number}</source>
        <translation>클래스 {number}</translation>
    </message>
    <message>
        <source>byte {number}</source>
        <translation>바이트 {number}</translation>
    </message>
    <message>
        <source>Source: {source}</source>
        <translation>출처: {source}</translation>
    </message>
    <message>
        <source>Estimated loss increase with the head off, from its gradient; on texts like the training data gradients cancel, and the rest is mostly noise</source>
        <translation>헤드를 껐을 때의 손실 증가를 그래디언트로 추정한 값. 학습 데이터와 비슷한 텍스트에서는 그래디언트가 상쇄되고 남은 것은 대부분 잡음입니다</translation>
    </message>
    <message>
        <source>−Σ G / n,  G = ∂L/∂x,  x: 1 on, 0 off</source>
        <translation>−Σ G / n,  G = ∂L/∂x,  x: 1 켜짐, 0 꺼짐</translation>
    </message>
    <message>
        <source>How much the loss of each text depends on the head, in either direction: absolute gradients do not cancel</source>
        <translation>각 텍스트의 손실이 방향과 관계없이 헤드에 의존하는 정도. 그래디언트의 절댓값은 상쇄되지 않습니다</translation>
    </message>
    <message>
        <source>Σ |G| / n,  G = ∂L/∂x,  x: 1 on, 0 off</source>
        <translation>Σ |G| / n,  G = ∂L/∂x,  x: 1 켜짐, 0 꺼짐</translation>
    </message>
    <message>
        <source>Absolute gradient times head output, per token (per text in the last layer of a classifier)</source>
        <translation>그래디언트와 헤드 출력을 곱한 절댓값, 토큰당(분류기의 마지막 레이어에서는 텍스트당)</translation>
    </message>
    <message>
        <source>Σ |c · ∂L/∂c| / n,  c: head output</source>
        <translation>Σ |c · ∂L/∂c| / n,  c: 헤드 출력</translation>
    </message>
    <message>
        <source>How much the loss of batches of 32 texts depends on the head; the number depends on the batch size</source>
        <translation>텍스트 32개 배치의 손실이 헤드에 의존하는 정도. 값은 배치 크기에 따라 달라집니다</translation>
    </message>
    <message>
        <source>Σ |Σ G|,  the inner sum over a batch</source>
        <translation>Σ |Σ G|,  안쪽 합은 한 배치에 대한 합</translation>
    </message>
    <message>
        <source>Mean squared gradient of the loss: an estimate of its curvature</source>
        <translation>손실의 그래디언트 제곱 평균: 손실 곡률의 추정값</translation>
    </message>
    <message>
        <source>Σ G² / N,  N texts</source>
        <translation>Σ G² / N,  텍스트 N개</translation>
    </message>
    <message>
        <source>Measured loss increase with only this head off (leave-one-out)</source>
        <translation>이 헤드만 껐을 때 측정한 손실 증가(leave-one-out)</translation>
    </message>
    <message>
        <source>Measured loss increase with only this head on in its layer; low for an important head, so the colours reverse its sign</source>
        <translation>레이어에서 이 헤드만 켰을 때 측정한 손실 증가. 중요한 헤드일수록 낮으므로 색상은 부호를 뒤집습니다</translation>
    </message>
    <message>
        <source>Σ (Lₕ − L) / n,  Lₕ: alone in its layer</source>
        <translation>Σ (Lₕ − L) / n,  Lₕ: 레이어에서 단독으로 켬</translation>
    </message>
    <message>
        <source>Mean change of the loss when the head is added, over random orders (Shapley value); low for an important head, so the colours reverse its sign</source>
        <translation>무작위 순서들에서 헤드를 더했을 때의 평균 손실 변화(섀플리 값). 중요한 헤드일수록 낮으므로 색상은 부호를 뒤집습니다</translation>
    </message>
    <message>
        <source>φₕ = mean (L(S ∪ h) − L(S)),  Σ φₕ = L(all) − L(none)</source>
        <translation>φₕ = mean (L(S ∪ h) − L(S)),  Σ φₕ = L(전체) − L(없음)</translation>
    </message>
    <message>
        <source>Gate of the head after training with a penalty on open gates, 0 to 1</source>
        <translation>열린 게이트에 벌점을 주어 학습한 뒤 헤드의 게이트 값, 0~1</translation>
    </message>
    <message>
        <source>clip(1.2 σ(ln α) − 0.1, 0, 1)</source>
        <translation>clip(1.2 σ(ln α) − 0.1, 0, 1)</translation>
    </message>
    <message>
        <source>Accuracy with these heads off, with its 95 % interval (Agresti and Coull)</source>
        <translation>이 헤드들을 껐을 때의 정확도와 95 % 구간(Agresti, Coull)</translation>
    </message>
    <message>
        <source>Agresti, Coull 1998; statistics.md</source>
        <translation>Agresti, Coull 1998; statistics.md</translation>
    </message>
    <message>
        <source>Mean loss per token with these heads off, with its 95 % interval over windows</source>
        <translation>이 헤드들을 껐을 때 토큰당 평균 손실과 윈도에 대한 95 % 구간</translation>
    </message>
    <message>
        <source>−(1/n) Σ ln p(token | previous tokens)</source>
        <translation>−(1/n) Σ ln p(토큰 | 이전 토큰)</translation>
    </message>
    <message>
        <source>Cochran 1977, 2.11; statistics.md</source>
        <translation>Cochran 1977, 2.11; statistics.md</translation>
    </message>
    <message>
        <source>Perplexity: exp of the loss per token and of its 95 % interval</source>
        <translation>퍼플렉시티: 토큰당 손실과 그 95 % 구간의 exp</translation>
    </message>
    <message>
        <source>exp(−(1/n) Σ ln p(token | previous tokens))</source>
        <translation>exp(−(1/n) Σ ln p(토큰 | 이전 토큰))</translation>
    </message>
    <message>
        <source>Jelinek et al. 1977; statistics.md</source>
        <translation>Jelinek et al. 1977; statistics.md</translation>
    </message>
    <message>
        <source>The interval holds for a number of texts fixed in advance: it is not corrected for early stopping</source>
        <translation>이 구간은 미리 정한 텍스트 수에 대해 유효하며, 조기 중지에 대해 보정되지 않습니다</translation>
    </message>
    <message>
        <source>P(p in the interval) ≈ 95 %</source>
        <translation>P(p ∈ 구간) ≈ 95 %</translation>
    </message>
    <message>
        <source>Accuracy of the full model on the same examples</source>
        <translation>같은 예제에 대한 전체 모델의 정확도</translation>
    </message>
    <message>
        <source>Change of the accuracy, in points, with Bonett and Price's interval for pairs; not significant where it includes 0</source>
        <translation>정확도의 변화(%p)와 쌍에 대한 Bonett과 Price의 구간. 구간에 0이 포함되면 유의하지 않음</translation>
    </message>
    <message>
        <source>Bonett, Price 2012; statistics.md</source>
        <translation>Bonett, Price 2012; statistics.md</translation>
    </message>
    <message>
        <source>Predictions newly wrong (b) and newly right (c); p: McNemar's exact test</source>
        <translation>새로 틀린 예측(b)과 새로 맞은 예측(c). p: 맥니머의 정확 검정</translation>
    </message>
    <message>
        <source>p = min(1, 2 P(X ≤ min(b, c))),  X ~ B(b + c, ½)</source>
        <translation>p = min(1, 2 P(X ≤ min(b, c))),  X~B(b + c, ½)</translation>
    </message>
    <message>
        <source>McNemar 1947, exact; statistics.md</source>
        <translation>McNemar 1947, 정확 검정; statistics.md</translation>
    </message>
    <message>
        <source>Parameters removed with the heads: queries and output of each head, keys and values of key groups whose heads are all off</source>
        <translation>헤드와 함께 제거되는 파라미터: 각 헤드의 쿼리와 출력, 헤드가 모두 꺼진 키 그룹의 키와 값</translation>
    </message>
    <message>
        <source>Σ heads |W_Q, W_O| + Σ groups |W_K, W_V|</source>
        <translation>Σ 헤드 |W_Q, W_O| + Σ 그룹 |W_K, W_V|</translation>
    </message>
    <message>
        <source>Bits of loss added at this position with the heads off; higher is worse</source>
        <translation>헤드를 껐을 때 이 위치에서 늘어난 손실의 비트 수. 높을수록 나쁨</translation>
    </message>
    <message>
        <source>(L₋ − L) / ln 2</source>
        <translation>(L₋ − L) / ln 2</translation>
    </message>
    <message>
        <source>Loss in bits, of the full model and with the heads off</source>
        <translation>전체 모델의 손실과 헤드를 껐을 때의 손실(비트)</translation>
    </message>
    <message>
        <source>−log₂ p(target)</source>
        <translation>−log₂ p(정답)</translation>
    </message>
    <message>
        <source>Shannon 1948; statistics.md</source>
        <translation>Shannon 1948; statistics.md</translation>
    </message>
    <message>
        <source>Change of the slice with the heads off, in points of accuracy or bits of loss</source>
        <translation>헤드를 껐을 때 슬라이스의 변화, 정확도의 %p 또는 손실의 비트</translation>
    </message>
    <message>
        <source>(c − b) / n,  or the mean of (L₋ − L) / ln 2</source>
        <translation>(c − b) / n,  또는 (L₋ − L) / ln 2의 평균</translation>
    </message>
    <message>
        <source>95 % interval of that change; not significant where it includes 0. Not adjusted for the number of slices</source>
        <translation>그 변화의 95 % 구간. 0이 포함되면 유의하지 않음. 슬라이스 수에 대해 보정되지 않음</translation>
    </message>
    <message>
        <source>Bonett, Price 2012 (points); Cochran 1977, 2.11 (bits)</source>
        <translation>Bonett, Price 2012(%p); Cochran 1977, 2.11(비트)</translation>
    </message>
    <message>
        <source>k*: the largest number of heads off up to which every measured score is at most 1 point below the full model; with 95 % confidence: the same for the lower end of the interval</source>
        <translation>k*: 측정된 모든 점수가 전체 모델보다 최대 1 %p 낮은 범위에서 끌 수 있는 가장 많은 헤드의 수. 95 % 신뢰 수준: 구간의 하한에 같은 기준을 적용한 값</translation>
    </message>
    <message>
        <source>k* = max {k : value(j) ≥ value(0) − 0.01 for all j ≤ k}</source>
        <translation>k* = max {k : value(j) ≥ value(0) − 0.01 for all j ≤ k}</translation>
    </message>
    <message>
        <source>sixteen-heads.md; statistics.md</source>
        <translation>sixteen-heads.md; statistics.md</translation>
    </message>
    <message>
        <source>Number of heads switched off</source>
        <translation>꺼진 헤드의 수</translation>
    </message>
    <message>
        <source>Share of the parameters of all heads removed with the heads that are off</source>
        <translation>모든 헤드의 파라미터 중 꺼진 헤드와 함께 제거되는 비율</translation>
    </message>
    <message>
        <source>Share of the FLOPs of all heads removed with the heads that are off, for a text of mean length</source>
        <translation>모든 헤드의 FLOPs 중 꺼진 헤드와 함께 제거되는 비율, 평균 길이의 텍스트 기준</translation>
    </message>
    <message>
        <source>Σ heads (2 |W_Q, W_O| Tq + 4 pairs dₕ) + Σ groups 2 |W_K, W_V| Tk</source>
        <translation>Σ 헤드 (2 |W_Q, W_O| Tq + 4 쌍수 dₕ) + Σ 그룹 2 |W_K, W_V| Tk</translation>
    </message>
    <message>
        <source>{score} ({low} to {high})</source>
        <translation>{score} ({low}~{high})</translation>
    </message>
    <message>
        <source>The importance scores are not saved.</source>
        <translation>중요도 점수가 저장되지 않았습니다.</translation>
    </message>
    <message>
        <source>The importance scores of {name} are not saved.</source>
        <translation>저장되지 않은 중요도 점수: {name}.</translation>
    </message>
    <message>
        <source>Not finished: {job}.</source>
        <translation>완료되지 않음: {job}.</translation>
    </message>
    <message>
        <source>Not saved: {masks}.</source>
        <translation>저장되지 않음: {masks}.</translation>
    </message>
    <message>
        <source>mask</source>
        <translation>마스크</translation>
    </message>
    <message>
        <source>Recent</source>
        <translation>최근 항목</translation>
    </message>
    <message>
        <source>Model</source>
        <translation>모델</translation>
    </message>
    <message>
        <source>Capture</source>
        <translation>캡처</translation>
    </message>
    <message>
        <source>Token IDs</source>
        <translation>토큰 ID</translation>
    </message>
    <message>
        <source>Scores</source>
        <translation>점수</translation>
    </message>
    <message>
        <source>Data</source>
        <translation>데이터</translation>
    </message>
    <message>
        <source>Study of runs</source>
        <translation>실행 스터디</translation>
    </message>
    <message>
        <source>finding the files of the session</source>
        <translation>세션의 파일 찾는 중</translation>
    </message>
    <message>
        <source>The rest is opened</source>
        <translation>나머지는 열립니다</translation>
    </message>
    <message>
        <source>Open the file on its own</source>
        <translation>파일을 따로 여십시오</translation>
    </message>
    <message>
        <source>writing the session</source>
        <translation>세션 쓰는 중</translation>
    </message>
    <message>
        <source>Choose another folder</source>
        <translation>다른 폴더를 선택하십시오</translation>
    </message>
    <message>
        <source>Opening the last session</source>
        <translation>지난 세션 열기</translation>
    </message>
    <message>
        <source>saving the open session</source>
        <translation>열린 세션 저장 중</translation>
    </message>
    <message>
        <source>Restore the last session?</source>
        <translation>지난 세션을 복원하시겠습니까?</translation>
    </message>
    <message>
        <source>Unexpected exit. Open at {time}:</source>
        <translation>예기치 않게 종료되었습니다. {time}에 열려 있던 항목:</translation>
    </message>
    <message>
        <source>Discard</source>
        <translation>버리기</translation>
    </message>
    <message>
        <source>Restore</source>
        <translation>복원</translation>
    </message>
    <message>
        <source>The last session cannot be restored</source>
        <translation>지난 세션을 복원할 수 없습니다</translation>
    </message>
    <message>
        <source>hgviz cannot save a copy of this session: {why}</source>
        <translation>이 세션의 사본을 저장할 수 없습니다: {why}</translation>
    </message>
    <message>
        <source>Heads off</source>
        <translation>꺼진 헤드</translation>
    </message>
    <message>
        <source>not saved yet</source>
        <translation>아직 저장되지 않음</translation>
    </message>
    <message>
        <source>unsaved</source>
        <translation>저장되지 않음</translation>
    </message>
    <message>
        <source>linear attention</source>
        <translation>선형 어텐션</translation>
    </message>
    <message>
        <source>leaky ReLU</source>
        <translation>leaky ReLU</translation>
    </message>
    <message>
        <source>with {name}</source>
        <translation>{name}에서</translation>
    </message>
    <message>
        <source>on {name}</source>
        <translation>{name}에서</translation>
    </message>
    <message>
        <source>this text</source>
        <translation>이 텍스트</translation>
    </message>
    <message>
        <source>the other text</source>
        <translation>다른 텍스트</translation>
    </message>
    <message>
        <source>One checkpoint, {here} replaced by {there}, not retrained.</source>
        <translation>한 체크포인트, {here} → {there} 교체, 재학습 없음.</translation>
    </message>
    <message>
        <source>One checkpoint, the same on both sides.</source>
        <translation>한 체크포인트, 양쪽이 같음.</translation>
    </message>
    <message>
        <source>One model</source>
        <translation>한 모델</translation>
    </message>
    <message>
        <source>Two models</source>
        <translation>두 모델</translation>
    </message>
    <message>
        <source>one text</source>
        <translation>한 텍스트</translation>
    </message>
    <message>
        <source>: heads with the same number are not related</source>
        <translation>: 번호가 같은 헤드라도 서로 관련이 없습니다</translation>
    </message>
    <message>
        <source>The same head on both sides: choose another head for B.</source>
        <translation>양쪽이 같은 헤드입니다. B의 헤드를 다른 것으로 선택하십시오.</translation>
    </message>
    <message>
        <source>Two heads of one model.</source>
        <translation>한 모델의 두 헤드.</translation>
    </message>
    <message>
        <source>Two levels of one model, {a} and {b}.</source>
        <translation>한 모델의 두 단계, {a} 및 {b}.</translation>
    </message>
    <message>
        <source>in {name}</source>
        <translation>{name}에서</translation>
    </message>
    <message>
        <source>{heads} off in {side} only</source>
        <translation>{side}에서만 {heads} 꺼짐</translation>
    </message>
    <message>
        <source>the same heads off on both sides</source>
        <translation>양쪽에서 같은 헤드 꺼짐</translation>
    </message>
    <message>
        <source>One model, {words}.</source>
        <translation>한 모델, {words}.</translation>
    </message>
    <message>
        <source>{name} without {heads}</source>
        <translation>{name}, {heads} 제외</translation>
    </message>
    <message>
        <source>without {heads}</source>
        <translation>{heads} 제외</translation>
    </message>
    <message>
        <source>with all heads</source>
        <translation>모든 헤드 포함</translation>
    </message>
    <message>
        <source>heads {heads} and {last}</source>
        <translation>헤드 {heads}, {last}</translation>
    </message>
    <message>
        <source>six activations</source>
        <translation>여섯 활성화 함수</translation>
    </message>
    <message>
        <source>model default</source>
        <translation>모델 기본값</translation>
    </message>
    <message>
        <source>{name} of {count}</source>
        <translation>{name}, {count}개</translation>
    </message>
    <message>
        <source>reading the file</source>
        <translation>파일 읽는 중</translation>
    </message>
    <message>
        <source>is a study of head importance and has no maps to compare</source>
        <translation>파일은 헤드 중요도 스터디이므로 비교할 맵이 없습니다</translation>
    </message>
    <message>
        <source>Choose a checkpoint or a capture</source>
        <translation>체크포인트나 캡처를 선택하십시오</translation>
    </message>
    <message>
        <source>Enter another text for B</source>
        <translation>B에 다른 텍스트를 입력하십시오</translation>
    </message>
    <message>
        <source>B needs the checkpoint of A: A was opened from a capture, which has no model weights</source>
        <translation>B에는 A의 체크포인트가 필요합니다: A는 모델 가중치가 없는 캡처에서 열렸습니다</translation>
    </message>
    <message>
        <source>Open the checkpoint, or choose another checkpoint or capture for B</source>
        <translation>체크포인트를 열거나, B에 다른 체크포인트나 캡처를 선택하십시오</translation>
    </message>
    <message>
        <source>Running model for B</source>
        <translation>B의 모델 실행</translation>
    </message>
    <message>
        <source>Change…</source>
        <translation>변경…</translation>
    </message>
    <message>
        <source>Stop running the model for {side}</source>
        <translation>{side}의 모델 실행 중지</translation>
    </message>
    <message>
        <source>Sides</source>
        <translation>A와 B</translation>
    </message>
    <message>
        <source>Export the maps below instead</source>
        <translation>대신 아래의 맵을 내보내십시오</translation>
    </message>
    <message>
        <source>Source of B</source>
        <translation>B의 출처</translation>
    </message>
    <message>
        <source>not chosen</source>
        <translation>선택되지 않음</translation>
    </message>
    <message>
        <source>{name}, activation replaced</source>
        <translation>{name}, 활성화 함수 교체됨</translation>
    </message>
    <message>
        <source>{name} on {text}</source>
        <translation>{name}, 텍스트 {text}</translation>
    </message>
    <message>
        <source>loss {score}</source>
        <translation>손실 {score}</translation>
    </message>
    <message>
        <source>accuracy {score}</source>
        <translation>정확도 {score}</translation>
    </message>
    <message>
        <source>Another checkpoint on the same text, or a saved capture.</source>
        <translation>같은 텍스트에 대한 다른 체크포인트 또는 저장된 캡처.</translation>
    </message>
    <message>
        <source>Same weights and text, another activation, not retrained.</source>
        <translation>가중치와 텍스트는 같고 활성화 함수만 다름, 재학습 없음.</translation>
    </message>
    <message>
        <source>The same model on another text; tokens in both texts are compared.</source>
        <translation>다른 텍스트에 대한 같은 모델. 두 텍스트에 모두 있는 토큰을 비교합니다.</translation>
    </message>
    <message>
        <source>The same model and text with these heads off.</source>
        <translation>이 헤드들을 끈 같은 모델과 텍스트.</translation>
    </message>
    <message>
        <source>Another head</source>
        <translation>다른 헤드</translation>
    </message>
    <message>
        <source>Another head of the same capture, for example at another level.</source>
        <translation>같은 캡처의 다른 헤드(예: 다른 단계의 헤드).</translation>
    </message>
    <message>
        <source>12.5, 4.* for a whole layer; empty for all heads on</source>
        <translation>12.5, 레이어 전체는 4.*; 비워 두면 모든 헤드 켜짐</translation>
    </message>
    <message>
        <source>Open the checkpoint first: this capture was opened from a file.</source>
        <translation>먼저 체크포인트를 여십시오. 이 캡처는 파일에서 열렸습니다.</translation>
    </message>
    <message>
        <source>What to compare with</source>
        <translation>비교할 대상</translation>
    </message>
    <message>
        <source>default: the matching head</source>
        <translation>기본값: 대응하는 헤드</translation>
    </message>
    <message>
        <source>Head of B</source>
        <translation>B의 헤드</translation>
    </message>
    <message>
        <source>Activation of B</source>
        <translation>B의 활성화 함수</translation>
    </message>
    <message>
        <source>Model default</source>
        <translation>모델 기본값</translation>
    </message>
    <message>
        <source>Checkpoint or capture</source>
        <translation>체크포인트 또는 캡처</translation>
    </message>
    <message>
        <source>Choose a model</source>
        <translation>모델 선택</translation>
    </message>
    <message>
        <source>Another file…</source>
        <translation>다른 파일…</translation>
    </message>
    <message>
        <source>Another folder…</source>
        <translation>다른 폴더…</translation>
    </message>
    <message>
        <source>Text of B</source>
        <translation>B의 텍스트</translation>
    </message>
    <message>
        <source>Second text of B</source>
        <translation>B의 두 번째 텍스트</translation>
    </message>
    <message>
        <source>Heads off in B</source>
        <translation>B에서 끌 헤드</translation>
    </message>
    <message>
        <source>Heads off in A: {heads}.</source>
        <translation>A에서 꺼진 헤드: {heads}.</translation>
    </message>
    <message>
        <source>A has no heads off.</source>
        <translation>A에는 꺼진 헤드가 없습니다.</translation>
    </message>
    <message>
        <source>Enter the layer and the head, such as 3.1</source>
        <translation>레이어와 헤드를 입력하십시오(예: 3.1)</translation>
    </message>
    <message>
        <source>Choose a checkpoint or a capture.</source>
        <translation>체크포인트나 캡처를 선택하십시오.</translation>
    </message>
    <message>
        <source>The text is empty.</source>
        <translation>텍스트가 비어 있습니다.</translation>
    </message>
    <message>
        <source>Enter the head of B, such as 3.1.</source>
        <translation>B의 헤드를 입력하십시오(예: 3.1).</translation>
    </message>
    <message>
        <source>The same heads are off in A.</source>
        <translation>A에서 같은 헤드들이 꺼져 있습니다.</translation>
    </message>
    <message>
        <source>The hourglass was used at sea. When the sand of the hourglass had run down, the sailor on watch turned the hourglass, and rang the bell.</source>
        <translation>The hourglass was used at sea. When the sand of the hourglass had run down, the sailor on watch turned the hourglass, and rang the bell.</translation>
    </message>
    <message>
        <source>The fish was not wonderful, but the evening was. Nobody can deny that the bread was great.</source>
        <translation>The fish was not wonderful, but the evening was. Nobody can deny that the bread was great.</translation>
    </message>
    <message>
        <source>measuring heads</source>
        <translation>헤드 측정 중</translation>
    </message>
    <message>
        <source>Choose a sound</source>
        <translation>소리를 선택하십시오</translation>
    </message>
    <message>
        <source> and "encoder_hidden_states"</source>
        <translation> 및 "encoder_hidden_states"</translation>
    </message>
    <message>
        <source>reading the text</source>
        <translation>텍스트 읽는 중</translation>
    </message>
    <message>
        <source>; stopped by hand</source>
        <translation>; 수동으로 중지됨</translation>
    </message>
    <message>
        <source>reading a row</source>
        <translation>행 하나 읽는 중</translation>
    </message>
    <message>
        <source>keeps the texts already captured</source>
        <translation>이미 캡처된 텍스트 유지</translation>
    </message>
    <message>
        <source>Generating text</source>
        <translation>텍스트 생성</translation>
    </message>
    <message>
        <source>keeps nothing yet</source>
        <translation>아직 유지할 것 없음</translation>
    </message>
    <message>
        <source>keeps {layers}</source>
        <translation>{layers} 유지</translation>
    </message>
    <message>
        <source>finished layer</source>
        <translation>완료된 레이어</translation>
    </message>
    <message>
        <source>The text was truncated: this model reads at most {most}</source>
        <translation>텍스트가 잘렸습니다. 이 모델이 읽을 수 있는 최대 길이: {most}</translation>
    </message>
    <message>
        <source>The second text was left out or truncated to fit this model</source>
        <translation>이 모델에 맞추기 위해 두 번째 텍스트를 제외하거나 잘랐습니다</translation>
    </message>
    <message>
        <source>keeps the generated text</source>
        <translation>생성된 텍스트 유지</translation>
    </message>
    <message>
        <source>Loading torch</source>
        <translation>torch 불러오기</translation>
    </message>
    <message>
        <source>Layer {layer} ({number} of {total})</source>
        <translation>레이어 {layer} ({number}/{total})</translation>
    </message>
    <message>
        <source>Finishing</source>
        <translation>마무리 중</translation>
    </message>
    <message>
        <source>Opening the finished part</source>
        <translation>완료된 부분 열기</translation>
    </message>
    <message>
        <source>Save captures as</source>
        <translation>캡처를 다른 이름으로 저장</translation>
    </message>
    <message>
        <source>Run</source>
        <translation>실행</translation>
    </message>
    <message>
        <source>It is text</source>
        <translation>텍스트입니다</translation>
    </message>
    <message>
        <source>No run chosen</source>
        <translation>선택한 실행이 없습니다</translation>
    </message>
    <message>
        <source>Choose a run in the table to see its result.</source>
        <translation>표에서 실행을 선택하면 결과가 표시됩니다.</translation>
    </message>
    <message>
        <source>This run is not done yet</source>
        <translation>이 실행은 아직 완료되지 않았습니다</translation>
    </message>
    <message>
        <source>No study is open</source>
        <translation>열린 스터디가 없습니다</translation>
    </message>
    <message>
        <source>Open a study file (.toml) or the output folder of a study.</source>
        <translation>스터디 파일(.toml)이나 스터디의 출력 폴더를 여십시오.</translation>
    </message>
    <message>
        <source>No run is done yet</source>
        <translation>아직 완료된 실행이 없습니다</translation>
    </message>
    <message>
        <source>ribbon</source>
        <translation>ribbon</translation>
    </message>
    <message>
        <source>{n:,} of {all:,} runs so far</source>
        <translation>지금까지 실행 {all:,}개 중 {n:,}개</translation>
    </message>
    <message>
        <source>Small marks: seeds. Large mark: mean m of n seeds. Bar: 95 % interval, m ± t s / √n, Student's t with n − 1 degrees of freedom (Student 1908; statistics.md).</source>
        <translation>작은 표식: 시드. 큰 표식: 시드 n개의 평균 m. 막대: 95 % 구간, m ± t s / √n, 자유도 n − 1인 스튜던트 t 분포(Student 1908; statistics.md).</translation>
    </message>
    <message>
        <source>This study does not score its models</source>
        <translation>이 스터디는 모델의 점수를 내지 않습니다</translation>
    </message>
    <message>
        <source>Add "score" to asks.</source>
        <translation>asks에 "score"를 추가하십시오.</translation>
    </message>
    <message>
        <source>No model is scored yet</source>
        <translation>아직 점수를 낸 모델이 없습니다</translation>
    </message>
    <message>
        <source>Each seed will be a point, with means and intervals.</source>
        <translation>각 시드가 점으로 표시되고 평균과 구간이 함께 나타납니다.</translation>
    </message>
    <message>
        <source>Pruning curves</source>
        <translation>프루닝 곡선</translation>
    </message>
    <message>
        <source>Line: the score with a share of heads off, mean over seeds. Shade: Student's 95 % interval, m ± t s / √n (statistics.md). Random orders: averaged per model and seed.</source>
        <translation>선: 헤드의 일부 비율을 껐을 때의 점수, 시드들의 평균. 음영: 스튜던트 95 % 구간, m ± t s / √n (statistics.md). 무작위 순서: 모델과 시드별로 평균.</translation>
    </message>
    <message>
        <source>This study has no pruning curves</source>
        <translation>이 스터디에는 프루닝 곡선이 없습니다</translation>
    </message>
    <message>
        <source>Add "curve" to asks, and methods.</source>
        <translation>asks에 "curve"를 추가하고 methods도 추가하십시오.</translation>
    </message>
    <message>
        <source>No curve is done yet</source>
        <translation>아직 완료된 곡선이 없습니다</translation>
    </message>
    <message>
        <source>Each method will be a line, averaged over seeds.</source>
        <translation>각 방법이 시드들을 평균한 선으로 표시됩니다.</translation>
    </message>
    <message>
        <source>{n} seed</source>
        <translation>시드 {n}개</translation>
    </message>
    <message>
        <source>{n} seeds</source>
        <translation>시드 {n}개</translation>
    </message>
    <message>
        <source>{seeds}: no interval</source>
        <translation>{seeds}: 구간 없음</translation>
    </message>
    <message>
        <source>{low} to {high} (95 % interval over {seeds})</source>
        <translation>{low}~{high} ({seeds}에 대한 95 % 구간)</translation>
    </message>
    <message>
        <source>{low} to {high} (95 % interval over seeds)</source>
        <translation>{low}~{high} (시드에 대한 95 % 구간)</translation>
    </message>
    <message>
        <source>{share} of heads off</source>
        <translation>헤드의 {share} 꺼짐</translation>
    </message>
    <message>
        <source>reading results</source>
        <translation>결과 읽는 중</translation>
    </message>
    <message>
        <source>Copy the command that computes the missing runs</source>
        <translation>남은 실행을 계산하는 명령 복사</translation>
    </message>
    <message>
        <source>Progress of the study</source>
        <translation>스터디 진행률</translation>
    </message>
    <message>
        <source>all runs are done</source>
        <translation>모든 실행이 완료되었습니다</translation>
    </message>
    <message>
        <source>{n:,} with other settings</source>
        <translation>설정이 다른 실행 {n:,}개</translation>
    </message>
    <message>
        <source>click a header to sort; Return opens the output of a run</source>
        <translation>제목을 클릭하면 정렬됩니다. Return 키로 실행의 출력을 엽니다</translation>
    </message>
    <message>
        <source>Method</source>
        <translation>방법</translation>
    </message>
    <message>
        <source>State</source>
        <translation>상태</translation>
    </message>
    <message>
        <source>Result</source>
        <translation>결과</translation>
    </message>
    <message>
        <source>Host</source>
        <translation>호스트</translation>
    </message>
    <message>
        <source>Error</source>
        <translation>오류</translation>
    </message>
    <message>
        <source>Runs</source>
        <translation>실행</translation>
    </message>
    <message>
        <source>Export one of the charts instead</source>
        <translation>대신 차트 중 하나를 내보내십시오</translation>
    </message>
    <message>
        <source>All runs</source>
        <translation>모든 실행</translation>
    </message>
    <message>
        <source>Charts</source>
        <translation>차트</translation>
    </message>
    <message>
        <source>a checkpoint</source>
        <translation>a checkpoint</translation>
    </message>
    <message>
        <source>b checkpoint</source>
        <translation>b checkpoint</translation>
    </message>
    <message>
        <source>Train</source>
        <translation>학습</translation>
    </message>
    <message>
        <source>Measure heads</source>
        <translation>헤드 측정</translation>
    </message>
    <message>
        <source>Curves</source>
        <translation>곡선</translation>
    </message>
    <message>
        <source>Open the model</source>
        <translation>모델 열기</translation>
    </message>
    <message>
        <source>Open both in Compare</source>
        <translation>둘 다 비교 페이지에서 열기</translation>
    </message>
    <message>
        <source>Open its heads in Prune</source>
        <translation>헤드를 프루닝 페이지에서 열기</translation>
    </message>
    <message>
        <source>Open its curves in Prune</source>
        <translation>곡선을 프루닝 페이지에서 열기</translation>
    </message>
    <message>
        <source>What the run does: train a model, score it, measure its heads, compute a pruning curve, or compare two models (docs/how-to/study.md).</source>
        <translation>실행이 하는 일: 모델 학습, 점수 계산, 헤드 측정, 프루닝 곡선 계산, 두 모델 비교(docs/how-to/study.md).</translation>
    </message>
    <message>
        <source>The data that the run uses, by its name under [[data]] in the study file.</source>
        <translation>실행이 사용하는 데이터, 스터디 파일의 [[data]]에 있는 이름.</translation>
    </message>
    <message>
        <source>The model, by its name under [[models]] in the study file.</source>
        <translation>모델, 스터디 파일의 [[models]]에 있는 이름.</translation>
    </message>
    <message>
        <source>The function from scores to weights; own: the model's own (maps.md).</source>
        <translation>스코어를 가중치로 바꾸는 함수. 자체: 모델 자체의 함수(maps.md).</translation>
    </message>
    <message>
        <source>Random seed of the training, and of the split into examples that order the heads and examples that measure the order.</source>
        <translation>학습의 무작위 시드이자, 예제를 헤드의 순서를 정하는 것과 그 순서를 측정하는 것으로 나누는 무작위 시드.</translation>
    </message>
    <message>
        <source>The score that orders the heads, or what is measured of them (statistics.md).</source>
        <translation>헤드의 순서를 정하는 점수 또는 헤드에 대해 측정하는 것(statistics.md).</translation>
    </message>
    <message>
        <source>done: has a result; waiting: no result yet; failed: ended with an error; blocked: needs a run that failed.</source>
        <translation>완료: 결과 있음; 대기: 아직 결과 없음; 실패: 오류로 종료; 차단됨: 실패한 실행이 필요함.</translation>
    </message>
    <message>
        <source>The measured value, with its 95 % interval.</source>
        <translation>측정값과 95 % 구간.</translation>
    </message>
    <message>
        <source>Wall-clock time of the run.</source>
        <translation>실행에 걸린 실제 시간.</translation>
    </message>
    <message>
        <source>The machine that the run used.</source>
        <translation>실행에 사용된 컴퓨터.</translation>
    </message>
    <message>
        <source>The last line of the error.</source>
        <translation>오류의 마지막 줄.</translation>
    </message>
    <message>
        <source>The score on held-out data at the end of the training (docs/how-to/train.md).</source>
        <translation>학습이 끝났을 때 따로 떼어 둔 데이터에 대한 점수(docs/how-to/train.md).</translation>
    </message>
    <message>
        <source>Accuracy k / n on n examples, with Wilson's 95 % interval (Wilson 1927): (k + z²/2 ± z √(k (n − k) / n + z²/4)) / (n + z²), z = 1.96. For language models bits per byte, −Σ log₂ p / bytes (statistics.md).</source>
        <translation>예제 n개에 대한 정확도 k / n과 윌슨 95 % 구간(Wilson 1927): (k + z²/2 ± z √(k (n − k) / n + z²/4)) / (n + z²), z = 1.96. 언어 모델에서는 바이트당 비트, −Σ log₂ p / 바이트 수(statistics.md).</translation>
    </message>
    <message>
        <source>The number of heads measured, and of examples: G = ∂loss/∂gate of a head, or the change of the loss without it (statistics.md).</source>
        <translation>측정한 헤드의 수와 예제의 수: G = 헤드의 ∂손실/∂게이트, 또는 헤드가 없을 때의 손실 변화(statistics.md).</translation>
    </message>
    <message>
        <source>The score with no heads off and with all heads off, on examples that were not used for the order (statistics.md).</source>
        <translation>끈 헤드가 없을 때와 모든 헤드를 껐을 때의 점수, 순서를 정하는 데 쓰지 않은 예제 기준(statistics.md).</translation>
    </message>
    <message>
        <source>(c − b) / n: of n predictions b are right in A alone, c in B alone; 95 % interval by Bonett and Price (2012), with b + 1, c + 1, n + 2. Identical: the share of predictions that are the same in both (statistics.md).</source>
        <translation>(c − b) / n: 예측 n개 중 b개는 A에서만, c개는 B에서만 맞음. Bonett과 Price(2012)의 95 % 구간, b + 1, c + 1, n + 2 사용. 동일: 양쪽에서 같은 예측의 비율(statistics.md).</translation>
    </message>
    <message>
        <source>seed {seed}</source>
        <translation>시드 {seed}</translation>
    </message>
    <message>
        <source>{score}, {low} to {high}</source>
        <translation>{score}, {low}~{high}</translation>
    </message>
    <message>
        <source>{heads} on {examples:,} examples</source>
        <translation>{heads}, 예제 {examples:,}개</translation>
    </message>
    <message>
        <source>{n:,} orders</source>
        <translation>순서 {n:,}개</translation>
    </message>
    <message>
        <source>from {first} to {last} with all heads off</source>
        <translation>{first}에서 시작, 모든 헤드를 끄면 {last}</translation>
    </message>
    <message>
        <source>bits per byte</source>
        <translation>바이트당 비트</translation>
    </message>
    <message>
        <source>agreement</source>
        <translation>agreement</translation>
    </message>
    <message>
        <source>reading the study</source>
        <translation>스터디 읽는 중</translation>
    </message>
    <message>
        <source>column</source>
        <translation>열</translation>
    </message>
    <message>
        <source>where</source>
        <translation>위치</translation>
    </message>
    <message>
        <source>Reading the text's weights</source>
        <translation>텍스트의 가중치 읽는 중</translation>
    </message>
    <message>
        <source>attention of the selected {unit} at every resolution</source>
        <translation>선택한 {unit}의 모든 해상도에서의 어텐션</translation>
    </message>
    <message>
        <source>attention of the selected {unit} in both texts</source>
        <translation>두 텍스트에서 선택한 {unit}의 어텐션</translation>
    </message>
    <message>
        <source>the target is a copy of the source; change it with Edit text…</source>
        <translation>대상문은 원문의 사본입니다. ‘텍스트 편집…’으로 바꾸십시오</translation>
    </message>
    <message>
        <source>Choose image…</source>
        <translation>이미지 선택…</translation>
    </message>
    <message>
        <source>Choose sound…</source>
        <translation>소리 선택…</translation>
    </message>
    <message>
        <source>No text yet</source>
        <translation>아직 텍스트가 없습니다</translation>
    </message>
    <message>
        <source>Enter a text to see the attention of each token.</source>
        <translation>텍스트를 입력하면 각 토큰의 어텐션이 표시됩니다.</translation>
    </message>
    <message>
        <source>Prediction of the model for this text</source>
        <translation>이 텍스트에 대한 모델의 예측</translation>
    </message>
    <message>
        <source>Text, one row for each resolution</source>
        <translation>텍스트, 해상도마다 한 행</translation>
    </message>
    <message>
        <source>Previous text: it was edited since. Run the model to see the new one.</source>
        <translation>이전 텍스트: 이후에 편집되었습니다. 새 텍스트를 보려면 모델을 실행하십시오.</translation>
    </message>
    <message>
        <source>Click a {unit} to see its attention.</source>
        <translation>클릭한 {unit}의 어텐션이 표시됩니다.</translation>
    </message>
    <message>
        <source>Mean of {many}.</source>
        <translation>{many}의 평균.</translation>
    </message>
    <message>
        <source>Red: positive, blue: negative.</source>
        <translation>빨강: 양수, 파랑: 음수.</translation>
    </message>
    <message>
        <source>Brighter: more attention.</source>
        <translation>밝을수록: 어텐션이 큼.</translation>
    </message>
    <message>
        <source>Underlined: the second text.</source>
        <translation>밑줄: 두 번째 텍스트.</translation>
    </message>
    <message>
        <source>Dotted: generated by the model.</source>
        <translation>점선: 모델이 생성함.</translation>
    </message>
    <message>
        <source>Click below to choose the query, above to choose the key.</source>
        <translation>아래를 클릭하면 쿼리, 위를 클릭하면 키가 선택됩니다.</translation>
    </message>
    <message>
        <source>Click in a text to show its head.</source>
        <translation>텍스트를 클릭하면 그 헤드가 표시됩니다.</translation>
    </message>
    <message>
        <source>The keys are slots, each a mix of the whole text.</source>
        <translation>키는 슬롯이며, 각 슬롯은 텍스트 전체가 섞인 것입니다.</translation>
    </message>
    <message>
        <source>One head per resolution (dashed in the hourglass).</source>
        <translation>해상도마다 헤드 하나(모래시계에서 파선).</translation>
    </message>
    <message>
        <source>no segment yet</source>
        <translation>아직 세그먼트 없음</translation>
    </message>
    <message>
        <source>JetBrains Mono</source>
        <translation>JetBrains Mono</translation>
    </message>
    <message>
        <source>DejaVu Sans Mono</source>
        <translation>DejaVu Sans Mono</translation>
    </message>
    <message>
        <source>Menlo</source>
        <translation>Menlo</translation>
    </message>
    <message>
        <source>Consolas</source>
        <translation>Consolas</translation>
    </message>
    <message>
        <source>Liberation Mono</source>
        <translation>Liberation Mono</translation>
    </message>
    <message>
        <source>Fusion</source>
        <translation>Fusion</translation>
    </message>
    <message>
        <source>Window</source>
        <translation>Window</translation>
    </message>
    <message>
        <source>WindowText Text ButtonText ToolTipText</source>
        <translation>WindowText Text ButtonText ToolTipText</translation>
    </message>
    <message>
        <source>Mid</source>
        <translation>Mid</translation>
    </message>
    <message>
        <source>AlternateBase Light</source>
        <translation>AlternateBase Light</translation>
    </message>
    <message>
        <source>Base Button ToolTipBase</source>
        <translation>Base Button ToolTipBase</translation>
    </message>
    <message>
        <source>Dark Shadow</source>
        <translation>Dark Shadow</translation>
    </message>
    <message>
        <source>Highlight Link LinkVisited Accent</source>
        <translation>Highlight Link LinkVisited Accent</translation>
    </message>
    <message>
        <source>Midlight</source>
        <translation>Midlight</translation>
    </message>
    <message>
        <source>There is no model to evaluate: a capture has no weights</source>
        <translation>평가할 모델이 없습니다: 캡처에는 모델 가중치가 없습니다</translation>
    </message>
    <message>
        <source>Open the checkpoint it was made with</source>
        <translation>캡처에 사용한 체크포인트를 여십시오</translation>
    </message>
    <message>
        <source>checking that heads have an effect</source>
        <translation>헤드의 영향 확인 중</translation>
    </message>
    <message>
        <source>opening another model</source>
        <translation>다른 모델 열기</translation>
    </message>
    <message>
        <source>Patching heads</source>
        <translation>헤드 패칭</translation>
    </message>
    <message>
        <source>Running the full and the pruned model</source>
        <translation>전체 모델과 프루닝한 모델 실행</translation>
    </message>
    <message>
        <source>Pruned model: {heads} off</source>
        <translation>프루닝한 모델: {heads} 꺼짐</translation>
    </message>
    <message>
        <source>Evaluating</source>
        <translation>평가</translation>
    </message>
    <message>
        <source>Computing head importance</source>
        <translation>헤드 중요도 계산</translation>
    </message>
    <message>
        <source>Computing pruning curve</source>
        <translation>프루닝 곡선 계산</translation>
    </message>
    <message>
        <source>off and on</source>
        <translation>끄고 켜기</translation>
    </message>
    <message>
        <source>Use bundled reviews</source>
        <translation>기본 제공 리뷰 사용</translation>
    </message>
    <message>
        <source>accuracy {share:.1f} % with all heads on</source>
        <translation>모든 헤드를 켠 정확도 {share:.1f} %</translation>
    </message>
    <message>
        <source>accuracy {share:.1f} % with {n:,} heads off</source>
        <translation>헤드 {n:,}개를 끈 정확도 {share:.1f} %</translation>
    </message>
    <message>
        <source>ablation by {kind}</source>
        <translation>어블레이션: {kind}</translation>
    </message>
    <message>
        <source>it measured another model than the one that is open</source>
        <translation>열려 있는 모델이 아닌 다른 모델을 측정했습니다</translation>
    </message>
    <message>
        <source>Open the study alone, which closes the model, or open its model first</source>
        <translation>스터디만 열거나(모델은 닫힙니다) 먼저 그 모델을 여십시오</translation>
    </message>
    <message>
        <source>The model of this study, {name}, is not open</source>
        <translation>이 스터디의 모델({name})이 열려 있지 않습니다</translation>
    </message>
    <message>
        <source>Open the model to switch heads off and evaluate it. The study stays open.</source>
        <translation>헤드를 끄고 평가하려면 모델을 여십시오. 스터디는 열린 채로 유지됩니다.</translation>
    </message>
    <message>
        <source>With {data}, its masks and curve continue; other data starts again.</source>
        <translation>{data} 데이터에서는 마스크와 곡선이 이어지고, 다른 데이터에서는 새로 시작합니다.</translation>
    </message>
    <message>
        <source>Stopped at {percent}: partial result</source>
        <translation>{percent}에서 중지됨: 일부 결과</translation>
    </message>
    <message>
        <source>Stopped at {percent}: nothing is drawn yet</source>
        <translation>{percent}에서 중지됨: 아직 그려진 것이 없습니다</translation>
    </message>
    <message>
        <source>This model does not read text</source>
        <translation>이 모델은 텍스트를 읽지 않습니다</translation>
    </message>
    <message>
        <source>It has no tokenizer: choose a file of token IDs to see their maps.</source>
        <translation>토크나이저가 없습니다. 맵을 보려면 토큰 ID 파일을 선택하십시오.</translation>
    </message>
    <message>
        <source>This model reads images</source>
        <translation>이 모델은 이미지를 읽습니다</translation>
    </message>
    <message>
        <source>Choose an image to see its maps.</source>
        <translation>이미지를 선택하면 맵이 표시됩니다.</translation>
    </message>
    <message>
        <source>This model reads sound</source>
        <translation>이 모델은 소리를 읽습니다</translation>
    </message>
    <message>
        <source>Choose a sound file to see its maps.</source>
        <translation>소리 파일을 선택하면 맵이 표시됩니다.</translation>
    </message>
    <message>
        <source>Nothing to show yet</source>
        <translation>아직 표시할 것이 없습니다</translation>
    </message>
    <message>
        <source>Run the model on a text first.</source>
        <translation>먼저 텍스트에 모델을 실행하십시오.</translation>
    </message>
    <message>
        <source>Nothing is captured yet</source>
        <translation>아직 캡처된 것이 없습니다</translation>
    </message>
    <message>
        <source>Export figure… (Ctrl+E)</source>
        <translation>그림 내보내기…(Ctrl+E)</translation>
    </message>
    <message>
        <source>This picture could not be drawn</source>
        <translation>이 그림을 그릴 수 없습니다</translation>
    </message>
    <message>
        <source>The text was edited since this was captured</source>
        <translation>캡처한 뒤에 텍스트가 편집되었습니다</translation>
    </message>
    <message>
        <source>previous text</source>
        <translation>이전 텍스트</translation>
    </message>
    <message>
        <source>Views of this head</source>
        <translation>이 헤드의 보기</translation>
    </message>
    <message>
        <source>Linear</source>
        <translation>선형</translation>
    </message>
    <message>
        <source>Log</source>
        <translation>로그</translation>
    </message>
    <message>
        <source>Colour scale</source>
        <translation>색상 척도</translation>
    </message>
    <message>
        <source>No attention to show yet</source>
        <translation>아직 표시할 어텐션이 없습니다</translation>
    </message>
    <message>
        <source>Run the model on a text to see the map of each head.</source>
        <translation>텍스트에 모델을 실행하면 각 헤드의 맵이 표시됩니다.</translation>
    </message>
    <message>
        <source>Layer {layer} is not captured yet</source>
        <translation>레이어 {layer}의 캡처가 아직 없습니다</translation>
    </message>
    <message>
        <source>It is shown as soon as it is captured.</source>
        <translation>캡처되는 즉시 표시됩니다.</translation>
    </message>
    <message>
        <source>About this pane (Shift+F1)</source>
        <translation>이 패널 정보(Shift+F1)</translation>
    </message>
    <message>
        <source>Search commands and heads</source>
        <translation>명령과 헤드 검색</translation>
    </message>
    <message>
        <source>Light theme</source>
        <translation>밝은 테마</translation>
    </message>
    <message>
        <source>Dark theme</source>
        <translation>어두운 테마</translation>
    </message>
    <message>
        <source>Open a checkpoint, a capture or a study (Ctrl+O)</source>
        <translation>체크포인트, 캡처 또는 스터디 열기(Ctrl+O)</translation>
    </message>
    <message>
        <source>Pages</source>
        <translation>페이지</translation>
    </message>
    <message>
        <source>Search</source>
        <translation>검색</translation>
    </message>
    <message>
        <source>Current model and recent files</source>
        <translation>현재 모델과 최근 파일</translation>
    </message>
    <message>
        <source>Theme</source>
        <translation>테마</translation>
    </message>
    <message>
        <source>Auto follows the system, also while hgviz is open.</source>
        <translation>자동은 hgviz가 열려 있는 동안에도 시스템을 따릅니다.</translation>
    </message>
    <message>
        <source>Interface scale</source>
        <translation>화면 배율</translation>
    </message>
    <message>
        <source>Also Ctrl++ and Ctrl+-; hgviz restarts to apply it.</source>
        <translation>Ctrl++와 Ctrl+-로도 바꿀 수 있습니다. hgviz를 다시 시작하면 적용됩니다.</translation>
    </message>
    <message>
        <source>Language</source>
        <translation>언어</translation>
    </message>
    <message>
        <source>Auto follows the system; hgviz restarts to apply it.</source>
        <translation>자동은 시스템을 따릅니다. hgviz를 다시 시작하면 적용됩니다.</translation>
    </message>
    <message>
        <source>Colour map</source>
        <translation>색상 맵</translation>
    </message>
    <message>
        <source>For weights in maps.</source>
        <translation>맵의 가중치에 쓰입니다.</translation>
    </message>
    <message>
        <source>Device</source>
        <translation>장치</translation>
    </message>
    <message>
        <source>Applies to models that are opened from now on.</source>
        <translation>지금부터 여는 모델에 적용됩니다.</translation>
    </message>
    <message>
        <source>Figure width</source>
        <translation>그림 너비</translation>
    </message>
    <message>
        <source>Figure format</source>
        <translation>그림 형식</translation>
    </message>
    <message>
        <source>Restore last session</source>
        <translation>지난 세션 복원</translation>
    </message>
    <message>
        <source>When hgviz starts without a file.</source>
        <translation>파일 없이 hgviz를 시작할 때 적용됩니다.</translation>
    </message>
    <message>
        <source>Square root</source>
        <translation>제곱근</translation>
    </message>
    <message>
        <source>Logarithm</source>
        <translation>로그</translation>
    </message>
    <message>
        <source>Viridis</source>
        <translation>Viridis</translation>
    </message>
    <message>
        <source>Cividis</source>
        <translation>Cividis</translation>
    </message>
    <message>
        <source>Magma</source>
        <translation>Magma</translation>
    </message>
    <message>
        <source>Blue and red</source>
        <translation>파랑과 빨강</translation>
    </message>
    <message>
        <source>Mean max weight</source>
        <translation>평균 최대 가중치</translation>
    </message>
    <message>
        <source>The largest weight of a row, averaged over rows</source>
        <translation>행의 최대 가중치를 행에 대해 평균한 값</translation>
    </message>
    <message>
        <source>Entropy</source>
        <translation>엔트로피</translation>
    </message>
    <message>
        <source>Entropy of a row, averaged over rows; 0 for a single key</source>
        <translation>행의 엔트로피를 행에 대해 평균한 값; 키가 하나면 0</translation>
    </message>
    <message>
        <source>Mean distance</source>
        <translation>평균 거리</translation>
    </message>
    <message>
        <source>Mean distance from query to key, weighted by attention</source>
        <translation>어텐션으로 가중한 쿼리와 키의 평균 거리</translation>
    </message>
    <message>
        <source>Previous {unit}</source>
        <translation>이전 {unit}</translation>
    </message>
    <message>
        <source>Weight on the previous position, averaged over rows</source>
        <translation>이전 위치의 가중치를 행에 대해 평균한 값</translation>
    </message>
    <message>
        <source>First {unit}</source>
        <translation>첫 {unit}</translation>
    </message>
    <message>
        <source>Weight on the first position, averaged over rows</source>
        <translation>첫 위치의 가중치를 행에 대해 평균한 값</translation>
    </message>
    <message>
        <source>Current {unit}</source>
        <translation>현재 {unit}</translation>
    </message>
    <message>
        <source>Weight on the query's own position, averaged over rows</source>
        <translation>쿼리 자신의 위치의 가중치를 행에 대해 평균한 값</translation>
    </message>
    <message>
        <source>Weight on the next position, averaged over rows</source>
        <translation>다음 위치의 가중치를 행에 대해 평균한 값</translation>
    </message>
    <message>
        <source>Last {unit}</source>
        <translation>마지막 {unit}</translation>
    </message>
    <message>
        <source>Weight on the last position, averaged over rows</source>
        <translation>마지막 위치의 가중치를 행에 대해 평균한 값</translation>
    </message>
    <message>
        <source>Separators</source>
        <translation>구분 토큰</translation>
    </message>
    <message>
        <source>Weight on special tokens between and after the texts, averaged over rows</source>
        <translation>텍스트 사이와 끝의 특수 토큰의 가중치를 행에 대해 평균한 값</translation>
    </message>
    <message>
        <source>Max weight on words</source>
        <translation>단어의 최대 가중치</translation>
    </message>
    <message>
        <source>The largest weight of a row on a token that is not special, averaged over rows</source>
        <translation>특수 토큰이 아닌 토큰에 대한 행의 최대 가중치를 행에 대해 평균한 값</translation>
    </message>
    <message>
        <source>Same {unit}</source>
        <translation>같은 {unit}</translation>
    </message>
    <message>
        <source>Weight on the same {unit} elsewhere, averaged over rows that have one</source>
        <translation>다른 곳의 같은 {unit}에 대한 가중치를 그런 것이 있는 행에 대해 평균한 값</translation>
    </message>
    <message>
        <source>Induction</source>
        <translation>인덕션</translation>
    </message>
    <message>
        <source>Weight on what followed the same {unit} earlier, averaged over rows that have one</source>
        <translation>앞서 같은 {unit} 다음에 온 것의 가중치를 그런 것이 있는 행에 대해 평균한 값</translation>
    </message>
    <message>
        <source>Diagonal</source>
        <translation>대각선</translation>
    </message>
    <message>
        <source>Weight on keys as far through their text as the query is through its own</source>
        <translation>텍스트 안의 상대 위치가 쿼리와 같은 키의 가중치</translation>
    </message>
    <message>
        <source>Positive sum</source>
        <translation>양수 합</translation>
    </message>
    <message>
        <source>Sum of the positive weights of a row, averaged over rows</source>
        <translation>행의 양수 가중치의 합을 행에 대해 평균한 값</translation>
    </message>
    <message>
        <source>Negative sum</source>
        <translation>음수 합</translation>
    </message>
    <message>
        <source>Sum of the negative weights of a row, averaged over rows</source>
        <translation>행의 음수 가중치의 합을 행에 대해 평균한 값</translation>
    </message>
    <message>
        <source>Positional</source>
        <translation>위치성</translation>
    </message>
    <message>
        <source>Share of rows whose largest weight is at the most common offset</source>
        <translation>최대 가중치가 가장 흔한 오프셋에 있는 행의 비율</translation>
    </message>
    <message>
        <source>Offset</source>
        <translation>오프셋</translation>
    </message>
    <message>
        <source>The most common offset of the largest weight of a row; −1 is the previous position</source>
        <translation>행의 최대 가중치의 가장 흔한 오프셋; −1은 이전 위치</translation>
    </message>
    <message>
        <source>Rarest word</source>
        <translation>가장 드문 단어</translation>
    </message>
    <message>
        <source>Share of rows whose largest weight is on the rarest word of their sentence</source>
        <translation>최대 가중치가 문장에서 가장 드문 단어에 있는 행의 비율</translation>
    </message>
    <message>
        <source>Share of the deviation from uniform attention explained by one kernel over offsets</source>
        <translation>균일 어텐션과의 차이 가운데 오프셋에 대한 커널 하나로 설명되는 비율</translation>
    </message>
    <message>
        <source>Kernel centre</source>
        <translation>커널 중심</translation>
    </message>
    <message>
        <source>The mean offset of the kernel; −1 is the previous position</source>
        <translation>커널의 평균 오프셋; −1은 이전 위치</translation>
    </message>
    <message>
        <source>Kernel width</source>
        <translation>커널 너비</translation>
    </message>
    <message>
        <source>The standard deviation of the kernel</source>
        <translation>커널의 표준편차</translation>
    </message>
    <message>
        <source>Content variance</source>
        <translation>내용에 따른 분산</translation>
    </message>
    <message>
        <source>Variance of a cell of the map between texts, averaged over cells</source>
        <translation>맵의 칸이 텍스트마다 달라지는 분산을 칸에 대해 평균한 값</translation>
    </message>
    <message>
        <source>Nearest head</source>
        <translation>가장 가까운 헤드</translation>
    </message>
    <message>
        <source>The Jensen-Shannon distance to the most similar head; 0 is the same map</source>
        <translation>가장 비슷한 헤드와의 젠슨-섀넌 거리; 0이면 같은 맵</translation>
    </message>
    <message>
        <source>Near-zero weights</source>
        <translation>0에 가까운 가중치</translation>
    </message>
    <message>
        <source>Negative mass</source>
        <translation>음수 비중</translation>
    </message>
    <message>
        <source>Share of a row’s weight |A| that is below 0; mean over rows</source>
        <translation>행의 가중치 |A| 가운데 0보다 작은 몫; 행에 대한 평균</translation>
    </message>
    <message>
        <source>Row sum</source>
        <translation>행 합</translation>
    </message>
    <message>
        <source>Sum of a row of A, averaged over rows; 1 for softmax, any value for signed weights</source>
        <translation>A의 행의 합을 행에 대해 평균한 값; softmax는 1, 부호 있는 가중치는 임의의 값</translation>
    </message>
    <message>
        <source>Effective rank / n</source>
        <translation>유효 랭크 / n</translation>
    </message>
    <message>
        <source>exp of the entropy of the singular values, divided by the smaller side of the map</source>
        <translation>특잇값 엔트로피의 exp를 맵의 짧은 변으로 나눈 값</translation>
    </message>
    <message>
        <source>Distance to other heads</source>
        <translation>다른 헤드와의 거리</translation>
    </message>
    <message>
        <source>Jensen-Shannon distance to the other heads of the layer, 0 identical to 1 disjoint</source>
        <translation>레이어의 다른 헤드와의 젠슨-섀넌 거리, 0은 동일, 1은 겹침 없음</translation>
    </message>
    <message>
        <source>Mean |dM/dS|</source>
        <translation>평균 |dM/dS|</translation>
    </message>
    <message>
        <source>Mean absolute gradient of the log odds of the correct answer with respect to a score, over rows on which they depend</source>
        <translation>스코어에 대한 정답 로그 오즈의 그래디언트 절댓값을 그에 영향을 주는 행에 대해 평균한 값</translation>
    </message>
    <message>
        <source>Vanished gradients</source>
        <translation>소실된 그래디언트</translation>
    </message>
    <message>
        <source>Gradient passed by the activation</source>
        <translation>활성화 함수를 통과한 그래디언트</translation>
    </message>
    <message>
        <source>Sum of |dM/dS| divided by sum of |dM/dA|: how much passes normalisation and activation</source>
        <translation>|dM/dS|의 합을 |dM/dA|의 합으로 나눈 값: 정규화와 활성화 함수를 통과하는 정도</translation>
    </message>
    <message>
        <source>mean |attention|</source>
        <translation>평균 |어텐션|</translation>
    </message>
    <message>
        <source>mean attention</source>
        <translation>평균 어텐션</translation>
    </message>
    <message>
        <source>1 − ‖A − T‖² / ‖A − U‖², T_ij ∝ κ(j − i), U_ij = 1 / n_i</source>
        <translation>1 − ‖A − T‖² / ‖A − U‖², T_ij ∝ κ(j − i), U_ij = 1 / n_i</translation>
    </message>
    <message>
        <source>Clark et al. 2019</source>
        <translation>Clark et al. 2019</translation>
    </message>
    <message>
        <source>Convolution-like</source>
        <translation>Convolution-like</translation>
    </message>
    <message>
        <source>Cordonnier et al. 2020; mechanisms.md</source>
        <translation>Cordonnier et al. 2020; mechanisms.md</translation>
    </message>
    <message>
        <source>Olsson et al. 2022</source>
        <translation>Olsson et al. 2022</translation>
    </message>
    <message>
        <source>Roy and Vetterli 2007</source>
        <translation>Roy and Vetterli 2007</translation>
    </message>
    <message>
        <source>Vig and Belinkov 2019</source>
        <translation>Vig and Belinkov 2019</translation>
    </message>
    <message>
        <source>Voita et al. 2019</source>
        <translation>Voita et al. 2019</translation>
    </message>
    <message>
        <source>Wang et al. 2023</source>
        <translation>Wang et al. 2023</translation>
    </message>
    <message>
        <source>Xiao et al. 2024</source>
        <translation>Xiao et al. 2024</translation>
    </message>
    <message>
        <source>argmax_d mean_i [argmax_j p_ij − i = d]</source>
        <translation>argmax_d mean_i [argmax_j p_ij − i = d]</translation>
    </message>
    <message>
        <source>exp(−Σ_k s_k ln s_k) / n, s_k = σ_k / Σ_l σ_l</source>
        <translation>exp(−Σ_k s_k ln s_k) / n, s_k = σ_k / Σ_l σ_l</translation>
    </message>
    <message>
        <source>max_d mean_i [argmax_j p_ij − i = d]</source>
        <translation>max_d mean_i [argmax_j p_ij − i = d]</translation>
    </message>
    <message>
        <source>mean_h mean_i √JS₂(p_i, q_i)</source>
        <translation>mean_h mean_i √JS₂(p_i, q_i)</translation>
    </message>
    <message>
        <source>mean_i [argmax_j p_ij ∈ w_i]</source>
        <translation>mean_i [argmax_j p_ij ∈ w_i]</translation>
    </message>
    <message>
        <source>mean_i max_j p_ij, p_ij = |a_ij| / Σ_k |a_ik|</source>
        <translation>mean_i max_j p_ij, p_ij = |a_ij| / Σ_k |a_ik|</translation>
    </message>
    <message>
        <source>mean_i max_j p_ij, x_j ≠ [SEP], [CLS], …</source>
        <translation>mean_i max_j p_ij, x_j ≠ [SEP], [CLS], …</translation>
    </message>
    <message>
        <source>mean_i p_i,0</source>
        <translation>mean_i p_i,0</translation>
    </message>
    <message>
        <source>mean_i p_i,i+1</source>
        <translation>mean_i p_i,i+1</translation>
    </message>
    <message>
        <source>mean_i p_i,i−1</source>
        <translation>mean_i p_i,i−1</translation>
    </message>
    <message>
        <source>mean_i p_i,n−1</source>
        <translation>mean_i p_i,n−1</translation>
    </message>
    <message>
        <source>mean_i p_ii</source>
        <translation>mean_i p_ii</translation>
    </message>
    <message>
        <source>mean_i Σ_j a_ij</source>
        <translation>mean_i Σ_j a_ij</translation>
    </message>
    <message>
        <source>mean_i Σ_j max(a_ij, 0)</source>
        <translation>mean_i Σ_j max(a_ij, 0)</translation>
    </message>
    <message>
        <source>mean_i Σ_j max(−a_ij, 0) / Σ_j |a_ij|</source>
        <translation>mean_i Σ_j max(−a_ij, 0) / Σ_j |a_ij|</translation>
    </message>
    <message>
        <source>mean_i Σ_j min(a_ij, 0)</source>
        <translation>mean_i Σ_j min(a_ij, 0)</translation>
    </message>
    <message>
        <source>mean_i Σ_j p_ij |i − j|</source>
        <translation>mean_i Σ_j p_ij |i − j|</translation>
    </message>
    <message>
        <source>mean_i Σ_j p_ij, j / m ≈ i / n</source>
        <translation>mean_i Σ_j p_ij, j / m ≈ i / n</translation>
    </message>
    <message>
        <source>mean_i Σ_j p_ij, x_j = [SEP]</source>
        <translation>mean_i Σ_j p_ij, x_j = [SEP]</translation>
    </message>
    <message>
        <source>mean_i Σ_j p_ij, x_j = x_i, j ≠ i</source>
        <translation>mean_i Σ_j p_ij, x_j = x_i, j ≠ i</translation>
    </message>
    <message>
        <source>mean_i Σ_j p_ij, x_j−1 = x_i, j &lt; i</source>
        <translation>mean_i Σ_j p_ij, x_j−1 = x_i, j &lt; i</translation>
    </message>
    <message>
        <source>mean_i −Σ_j p_ij ln p_ij</source>
        <translation>mean_i −Σ_j p_ij ln p_ij</translation>
    </message>
    <message>
        <source>mean_ij Var(p_ij), i, j &lt; 64</source>
        <translation>mean_ij Var(p_ij), i, j &lt; 64</translation>
    </message>
    <message>
        <source>mean_ij |∂M/∂s_ij|</source>
        <translation>mean_ij |∂M/∂s_ij|</translation>
    </message>
    <message>
        <source>min_h mean_i √JS₂(p_i, q_i), JS₂ = H₂((p + q) / 2) − (H₂(p) + H₂(q)) / 2</source>
        <translation>min_h mean_i √JS₂(p_i, q_i), JS₂ = H₂((p + q) / 2) − (H₂(p) + H₂(q)) / 2</translation>
    </message>
    <message>
        <source>rare word</source>
        <translation>rare word</translation>
    </message>
    <message>
        <source>same elsewhere</source>
        <translation>same elsewhere</translation>
    </message>
    <message>
        <source>same place</source>
        <translation>same place</translation>
    </message>
    <message>
        <source>Σ_ij |∂M/∂s_ij| / Σ_ij |∂M/∂a_ij|</source>
        <translation>Σ_ij |∂M/∂s_ij| / Σ_ij |∂M/∂a_ij|</translation>
    </message>
</context>
</TS>
