import { startLivePage } from './live-page.tsx';
import { showUnprintable } from './printable-nodes.ts';
import { startRecordingPage } from './recording-page.tsx';

showUnprintable();
if (document.documentElement.dataset['parts'] === 'recording') startRecordingPage();
else startLivePage();
