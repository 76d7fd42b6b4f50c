import { startLivePage } from './live-page.tsx';
import { startRecordingPage } from './recording-page.tsx';

if (document.documentElement.dataset['parts'] === 'recording') startRecordingPage();
else startLivePage();
